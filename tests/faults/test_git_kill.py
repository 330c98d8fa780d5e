"""The workbench is killed before each of its effects: the user's repository is untouched, and the task goes on."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import SESSION, TASK, User, make_home, make_repo
from tests.faults.git_scenes import CHANGES, base_of, die_at, whole_task

ROOT = Path(__file__).resolve().parents[2]
SHARES = 4


def play_until_killed(folder: Path, number: int) -> bool:
    """Do the task in a child that dies before its effect of that number; return whether it came that far."""
    child = os.fork()
    if child == 0:
        try:
            die_at(number)
            asyncio.run(whole_task(folder))
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in {0, -signal.SIGKILL}, status
    return status != 0


async def go_on(folder: Path) -> None:
    """Take the task up again and bring it to its end."""
    user = User(folder / "repo")
    repository = Repository(user.root, folder / "state")
    workspace = await repository.open(user.request(base=base_of(folder)))
    found = {change.path: change.after for change in await workspace.strays(user.git("rev-parse", "HEAD^{tree}"))}
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


def survive_all(folder: Path, share: int) -> int:
    """Kill at every effect whose number falls to this share; return how many."""
    killed = 0
    for number in range(share + 1, 1000, SHARES):
        place = folder / str(number)
        place.mkdir()
        user = make_repo(place / "repo")
        (place / "base").write_text(user.head())
        before = fingerprint(user.root)
        if not play_until_killed(place, number):
            return killed
        killed += 1
        assert fingerprint(user.root) == before, number
        asyncio.run(go_on(place))
        assert fingerprint(user.root) == before, number
        shutil.rmtree(place)
    return killed


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
    assert json.loads(done.stdout) * SHARES > 40


if __name__ == "__main__":
    sys.stdout.write(json.dumps(survive_all(Path(sys.argv[1]), int(sys.argv[2]))))
