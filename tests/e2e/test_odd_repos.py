"""Repositories in unusual states: what can be worked in is worked in, the rest is refused before anything is done."""

import shutil
import signal
from pathlib import Path

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import FINISH, PLAN, SCRIPTS, calc_repo, diff_step
from tests.e2e.machine import Machine, bodies, journal_lines

RUN = ("run", "--task", "T-1", "--yes", "--json")


def detached(machine: Machine, repo: Path) -> Path:
    machine.git(repo, "checkout", "--quiet", "--detach")
    return repo


def shallow(machine: Machine, repo: Path) -> Path:
    machine.git(repo, "commit", "--quiet", "--allow-empty", "--message", "second")
    machine.git(machine.folder, "clone", "--quiet", "--depth", "1", f"file://{repo}", "shallow")
    return machine.folder / "shallow"


def linked_worktree(machine: Machine, repo: Path) -> Path:
    machine.git(repo, "worktree", "add", "--quiet", "../linked")
    return machine.folder / "linked"


def below_the_root(machine: Machine, repo: Path) -> Path:
    (repo / "docs/deep").mkdir(parents=True)
    return repo / "docs/deep"


def of_spaces(machine: Machine, repo: Path) -> Path:
    return repo.rename(machine.folder / "a folder's  näme 'with' \"quotes\"")


def with_a_branch_of_our_name(machine: Machine, repo: Path) -> Path:
    machine.git(repo, "branch", "agent/T-1")
    machine.git(repo, "commit", "--quiet", "--allow-empty", "--message", "second")
    return repo


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [detached, shallow, linked_worktree, below_the_root, of_spaces, with_a_branch_of_our_name]
)
def test_work_goes_on(served: Machine, make: object) -> None:
    assert callable(make)
    folder: Path = make(served, calc_repo(served))
    root = Path(served.git(folder, "rev-parse", "--show-toplevel"))
    before = fingerprint(root, ["memory"])
    done = served.scripted(SCRIPTS, *RUN, cwd=folder)
    assert done.code == 0, done.err
    (committed,) = done.of_kind("task_committed")
    assert "left + right" in served.git(root, "show", f"{committed['branch']}:calc.py")
    assert served.git(root, "rev-parse", f"{committed['branch']}~1") == served.git(root, "rev-parse", "HEAD")
    assert fingerprint(root, ["memory"]) == before


def test_a_branch_named_agent_leaves_no_room_for_ours(served: Machine) -> None:
    repo = calc_repo(served)
    served.git(repo, "branch", "agent")
    before = fingerprint(repo, ["memory"])
    done = served.scripted(SCRIPTS, *RUN, cwd=repo)
    assert done.code == 4, done.err
    assert "branch named agent" in done.err or "'agent'" in done.err
    assert "Traceback" not in done.err
    assert fingerprint(repo, ["memory"]) == before
    assert (repo / "memory/plans/PLAN.yaml").read_text() == PLAN


@pytest.mark.slow
@pytest.mark.parametrize("what", ["worktree", "state"])
def test_what_is_deleted_meanwhile_is_made_again(served: Machine, what: str) -> None:
    repo = calc_repo(served)
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="ActionFinished#2")
    running.until_halted()
    running.send(signal.SIGKILL)
    worktree = Path(bodies(journal_lines(repo), "task_started")[0]["workspace"]["path"])
    shutil.rmtree(worktree if what == "worktree" else served.state)
    done = served.scripted(SCRIPTS, *RUN, cwd=repo)
    assert done.code == 0, done.err
    # With our state it is forgotten who began the session: one that the repo brings is not taken up.
    assert done.events[0]["kind"] == ("session_resumed" if what == "worktree" else "session_started")
    (committed,) = done.of_kind("task_committed")
    assert "left + right" in served.git(repo, "show", f"{committed['branch']}:calc.py")


@pytest.mark.slow
def test_commits_of_the_user_meanwhile_stay_theirs(served: Machine) -> None:
    repo = calc_repo(served)
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="token")
    running.until_halted()
    served.git(repo, "checkout", "--quiet", "-b", "mine")
    (repo / "mine.txt").write_text("mine\n")
    served.git(repo, "add", "mine.txt")
    served.git(repo, "commit", "--quiet", "--message", "mine")
    before = fingerprint(repo, ["memory"])
    running.release()
    done = running.wait()
    assert done.code == 0, done.err
    assert fingerprint(repo, ["memory"]) == before
    assert served.git(repo, "rev-parse", "agent/T-1~1") == served.git(repo, "rev-parse", "main")


@pytest.mark.slow
def test_a_plan_that_the_user_edits_meanwhile_keeps_the_edit(served: Machine) -> None:
    repo = calc_repo(served)
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="token")
    running.until_halted()
    path = repo / "memory/plans/PLAN.yaml"
    path.write_text(path.read_text() + "  - id: T-2   # thought of while it ran\n    description: Another\n")
    running.release()
    done = running.wait()
    assert done.code == 0, done.err
    text = path.read_text()
    assert "  - id: T-2   # thought of while it ran\n    description: Another\n" in text
    assert text.count("status: done") == 1


@pytest.mark.slow
def test_two_tasks_are_worked_on_side_by_side(served: Machine) -> None:
    plan = PLAN + "  - id: T-2\n    description: Say how\n    accept_tests: [python -c 'import how']\n"
    repo = calc_repo(served, {"memory/plans/PLAN.yaml": plan})
    running = served.start(*RUN, cwd=repo, scripts=SCRIPTS, halt="token")
    running.until_halted()
    scripts = {"T-2": (diff_step({}, {"how.py": "HOW = 'so'\n"}), FINISH)}
    other = served.scripted(scripts, "run", "--task", "T-2", "--yes", "--json", cwd=repo)
    assert other.code == 0, other.err
    running.release()
    done = running.wait()
    assert done.code == 0, done.err
    assert done.events[0]["session"] != other.events[0]["session"]
    assert served.git(repo, "show", "agent/T-2:how.py") == "HOW = 'so'"
    assert "left + right" in served.git(repo, "show", "agent/T-1:calc.py")
    assert (repo / "memory/plans/PLAN.yaml").read_text().count("status: done") == 2
