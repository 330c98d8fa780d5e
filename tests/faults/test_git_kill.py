"""The workbench is killed before each of its effects: the user's repository is untouched, and the task goes on."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import SESSION, TASK, User, make_home, make_repo
from tests.faults.git_scenes import CHANGES, base_of, die_at, note_effects, whole_task

ROOT = Path(__file__).resolve().parents[2]
SHARES = 2


Scene = Callable[[Path], Coroutine[None, None, None]]


def in_child(folder: Path, prepare: Callable[[], None], scene: Scene = whole_task) -> int:
    """Do the scene in a child that prepares itself before; return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            prepare()
            asyncio.run(scene(folder))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def find_moments(folder: Path, scene: Scene = whole_task) -> tuple[int, list[int]]:
    """Do the scene and return how many effects it has, and the numbers of those before which the disk changed.

    Whoever is killed before one of the others leaves what is left by a kill before the one ahead of it.
    """
    # Once to no purpose, so that each child after it finds the same imported.
    asyncio.run(scene(new_place(folder / "first")))
    notes = folder / "notes"
    place = new_place(folder / "noted")
    assert in_child(place, partial(note_effects, place, notes), scene) == 0
    states = notes.read_text().split()
    return len(states), [number for number, pair in enumerate(pairwise(["", *states]), 1) if pair[0] != pair[1]]


def new_place(place: Path) -> Path:
    """Make a folder with a repository and a note of what tasks start from."""
    place.mkdir()
    (place / "base").write_text(make_repo(place / "repo").head())
    return place


async def go_on(folder: Path) -> None:
    """Take the task up again and bring it to its end."""
    user = User(folder / "repo")
    repository = Repository(user.root, folder / "state")
    workspace = await repository.open(user.request(base=base_of(folder)))
    found = {
        change.path: change.after for change in await workspace.unapproved_changes(user.git("rev-parse", "HEAD^{tree}"))
    }
    wanted = {change.path: change.after for change in CHANGES}
    assert found in ({}, wanted), found
    if found:
        await workspace.restore(workspace.facts.base)
    tree = await workspace.write(CHANGES, user.git("rev-parse", "HEAD^{tree}"))
    await workspace.checkpoint(SESSION, 5, "again")
    commit = await workspace.commit(tree, "Done again")
    assert await repository.task_commit(TASK) == commit
    assert user.git("rev-parse", f"{commit}^{{tree}}", f"{commit}^") == f"{tree}\n{base_of(folder)}"
    await workspace.release(keep=False)
    assert len(user.git("worktree", "list").splitlines()) == 1
    assert list((folder / "state").rglob("agent-T-1*")) == []


def survive_all(folder: Path, share: int) -> tuple[int, int]:
    """Kill at every moment that falls to this share; return how many effects there were and how many moments."""
    effects, moments = find_moments(folder)
    for number in moments[share::SHARES]:
        place = new_place(folder / str(number))
        user = User(place / "repo")
        before = fingerprint(user.root)
        assert in_child(place, partial(die_at, number)) == -signal.SIGKILL, number
        assert fingerprint(user.root) == before, number
        asyncio.run(go_on(place))
        assert fingerprint(user.root) == before, number
        shutil.rmtree(place)
    return effects, len(moments)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_effect(share: int, tmp_path: Path) -> None:
    # In a process of its own: one with threads must not be forked.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"HOME": str(make_home(tmp_path / "home")), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.test_git_kill", str(tmp_path), str(share)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    effects, moments = json.loads(done.stdout)
    assert effects > 40
    assert moments > 20


if __name__ == "__main__":
    sys.stdout.write(json.dumps(survive_all(Path(sys.argv[1]), int(sys.argv[2]))))
