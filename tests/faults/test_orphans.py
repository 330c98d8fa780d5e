"""The start of a task is killed before each of its effects: nothing is left behind that nobody owns."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.ids import SessionId
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import OTHER_SESSION, SESSION, TASK, User, make_home
from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.conftest import served
from tests.e2e.machine import Machine
from tests.faults.git_scenes import base_of, die_at
from tests.faults.test_git_kill import ROOT, find_moments, in_child, new_place
from tests.llama_fixtures import llama_server, tiny_model_path

__all__ = ["llama_server", "served", "tiny_model_path"]

RUN = ("run", "--task", "T-1", "--yes", "--json")


def never(_session: SessionId, _branch: str) -> bool:
    """Answer as journals do in which no task was begun."""
    return False


async def start(folder: Path, session: SessionId = SESSION) -> None:
    """Begin a task as the engine does, up to the event that says so."""
    user = User(folder / "repo")
    repository = Repository(user.root, folder / "state").with_journals(never)
    branch = await repository.free_branch(TASK, session)
    assert branch == f"agent/{TASK}"
    await repository.open(user.request(session=session, branch=branch, base=base_of(folder)))


def survive_all(folder: Path) -> int:
    """Kill a start at every moment, and another session's start over what it left; return how many moments."""
    _, moments = find_moments(folder, start)
    for number in moments:
        place = new_place(folder / str(number))
        user = User(place / "repo")
        before = fingerprint(user.root)
        assert in_child(place, partial(die_at, number), start) == -signal.SIGKILL, number
        again = partial(start, session=OTHER_SESSION)
        assert in_child(place, partial(die_at, number), again) == -signal.SIGKILL, number
        asyncio.run(again(place))
        assert user.git("for-each-ref", "--format=%(refname:short)", "refs/heads/agent") == f"agent/{TASK}", number
        assert len(user.git("worktree", "list").splitlines()) == 2, number
        assert len(list((place / "state").glob("*/private/*"))) == 1, number
        assert fingerprint(user.root) == before, number
        shutil.rmtree(place)
    return len(moments)


@pytest.mark.slow
def test_a_start_killed_at_every_effect_leaves_no_orphan(tmp_path: Path) -> None:
    # In a process of its own: one with threads must not be forked.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"HOME": str(make_home(tmp_path / "home")), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.test_orphans", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) > 8


@pytest.mark.slow
def test_a_run_killed_before_its_first_event_is_told_by_the_doctor_and_cleaned_by_the_next(served: Machine) -> None:
    repo = calc_repo(served)
    before = fingerprint(repo, ["memory"])
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="open")
    running.until_halted()
    told = served.agent("doctor", cwd=repo).out
    assert "agent/T-1" not in told, "somebody is at it"
    running.send(signal.SIGKILL)
    told = served.agent("doctor", cwd=repo).out
    assert "agent/T-1 and its worktree" in told
    assert "never began; there is no work in it" in told
    assert "it is removed when T-1 is started" in told
    done = served.scripted(SCRIPTS, *RUN, cwd=repo)
    assert done.code == 0, done.said
    assert served.git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/agent") == "agent/T-1"
    assert len(served.git(repo, "worktree", "list").splitlines()) == 2
    assert "agent/T-1 and its worktree" not in served.agent("doctor", cwd=repo).out
    assert fingerprint(repo, ["memory"]) == before


@pytest.mark.slow
def test_what_holds_work_or_was_begun_is_left_alone(served: Machine) -> None:
    repo = calc_repo(served)
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="TaskStarted")
    running.until_halted()
    running.send(signal.SIGKILL)
    assert "agent/T-1" not in served.agent("doctor", cwd=repo).out, "its journal says that it was begun"
    worktree = next(served.state.rglob("calc.py")).parent
    shutil.rmtree(repo / "memory/sessions")
    (worktree / "calc.py").write_text("mine\n")
    told = served.agent("doctor", cwd=repo).out
    assert "it holds a file that was changed: calc.py" in told
    assert f"git worktree remove --force {worktree} && git branch -d agent/T-1" in told
    served.git(repo, "branch", "agent/by-hand")
    assert "agent/by-hand: no session began a task on it" in served.agent("doctor", cwd=repo).out
    assert served.scripted(SCRIPTS, *RUN, cwd=repo).code == 0
    branches = served.git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/agent").split()
    assert {"agent/T-1", "agent/by-hand"} < set(branches)
    assert (worktree / "calc.py").read_text() == "mine\n"


def test_of_a_repository_that_stood_here_before_the_worktree_alone_is_told(served: Machine) -> None:
    repo = calc_repo(served)
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="TaskStarted")
    running.until_halted()
    running.send(signal.SIGKILL)
    shutil.rmtree(repo)
    repo = calc_repo(served, {"more.py": "more = 1\n"})
    told = served.agent("doctor", cwd=repo).out
    worktree = next(served.state.rglob("calc.py")).parent
    assert f"agent/T-1, which is no branch any more, and its worktree {worktree}: made for T-1" in told
    assert f"look into it; when you no longer need it: rm -rf {worktree}" in told
    shutil.rmtree(worktree)
    assert "agent/T-1" not in served.agent("doctor", cwd=repo).out


if __name__ == "__main__":
    sys.stdout.write(json.dumps(survive_all(Path(sys.argv[1]))))
