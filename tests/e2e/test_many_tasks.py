"""`agent run --all` over tasks that are parked, held by another process, failed, or depend on such."""

from pathlib import Path

import pytest

from tests.e2e.calc import FINISH, GOOD, calc_repo
from tests.e2e.machine import Machine

pytestmark = pytest.mark.slow

PLAN = """\
version: 1
tasks:
  - {id: T-1, description: Make add() add, accept_tests: [python test_calc.py]}
  - {id: T-2, description: Look around}
  - {id: T-3, description: Go on from T-1, depends_on: [T-1]}
  - {id: T-4, description: Go on from T-2, depends_on: [T-2]}
"""
SCRIPTS = {"T-1": GOOD, **dict.fromkeys(("T-2", "T-3", "T-4"), (FINISH, FINISH))}
# Tasks that change nothing are done without a person here.
LENIENT = {"AGENT_APPROVALS__FINISH": "auto"}
OUTCOMES = [("T-1", "parked"), ("T-2", "done"), ("T-4", "done"), ("T-3", "waiting")]


def many_repo(machine: Machine, plan: str = PLAN) -> Path:
    return calc_repo(machine, {"memory/plans/PLAN.yaml": plan})


def test_one_parked_task_does_not_stop_the_others(served: Machine) -> None:
    repo = many_repo(served)
    done = served.scripted(SCRIPTS, "run", "--all", "--json", cwd=repo, environ=LENIENT)
    assert done.code == 3, done.said
    (ended,) = done.of_kind("run_ended")
    assert [(each["task"], each["outcome"]) for each in ended["outcomes"]] == OUTCOMES
    assert ended["exit_code"] == 3
    assert "T-1 waits for a person: check" in done.err
    assert "T-3 waits for T-1" in done.err
    assert "done: T-2, T-4" in done.err
    assert len(sessions(repo)) == 2, "one stays with the parked task"
    again = served.scripted(SCRIPTS, "run", "--all", cwd=repo, environ=LENIENT)
    assert again.code == 3, again.said
    assert len(sessions(repo)) == 2, "no session is begun where nothing is to be done"
    done = served.scripted(SCRIPTS, "run", "--all", "--yes", cwd=repo, environ=LENIENT)
    assert done.code == 0, done.said
    assert done.out.splitlines()[-1].startswith("T-3 done: ")
    assert len(sessions(repo)) == 2, "the parked session was taken up"


def test_every_parked_task_is_taken_up_in_its_own_session(served: Machine) -> None:
    plan = PLAN.replace("Look around}", "Look around, accept_tests: [python -V]}")
    repo = many_repo(served, plan)
    done = served.scripted(SCRIPTS, "run", "--all", cwd=repo, environ=LENIENT)
    assert done.code == 3, done.said
    assert "T-1 waits for a person: check" in done.out
    assert "; T-2 waits for a person: check" in done.out
    assert len(sessions(repo)) == 2
    done = served.scripted(SCRIPTS, "run", "--all", "--yes", cwd=repo, environ=LENIENT)
    assert done.code == 0, done.said
    assert len(sessions(repo)) == 2
    branches = served.git(repo, "branch", "--list", "agent/*", "--format=%(refname:short)").split()
    assert branches == ["agent/T-1"], "nothing was begun anew, and what changed nothing leaves no branch"


def test_tasks_that_another_process_holds_are_skipped(served: Machine) -> None:
    repo = many_repo(served)
    first = served.start(
        "run", "--task", "T-1", "--yes", "--unconfined", cwd=repo, scripts=SCRIPTS, halt="token", environ=LENIENT
    )
    first.until_halted()
    done = served.scripted(SCRIPTS, "run", "--all", "--json", cwd=repo, environ=LENIENT)
    assert done.code == 0, done.said
    (ended,) = done.of_kind("run_ended")
    assert [each["outcome"] for each in ended["outcomes"]] == ["held", "done", "done", "waiting"]
    assert "T-1 is held by session " in done.err
    number = len(sessions(repo))
    nothing = served.agent("run", "--all", cwd=repo, environ=LENIENT)
    assert nothing.code == 0, nothing.said
    assert "no task is ready; T-1 is held by session " in nothing.out
    assert len(sessions(repo)) == number
    locked = served.agent("run", "--task", "T-1", cwd=repo, environ=LENIENT)
    assert locked.code == 7, locked.said
    assert len(sessions(repo)) == number
    first.release()
    assert first.wait().code == 0


def test_a_failed_task_counts_before_a_parked_one(served: Machine) -> None:
    repo = many_repo(served, PLAN + "  - {id: T-5, description: Fail, budget: {tokens: 1}}\n")
    done = served.scripted({**SCRIPTS, "T-5": ("Thought: x",) * 9}, "run", "--all", cwd=repo, environ=LENIENT)
    assert done.code == 1, done.said
    assert "failed: T-5; T-1 waits for a person: check" in done.out


def sessions(repo: Path) -> list[Path]:
    return sorted((repo / "memory/sessions").glob("2*"))
