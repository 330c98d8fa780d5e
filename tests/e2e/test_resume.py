"""`agent sessions resume` and the flags of `agent run` that it shares."""

from pathlib import Path

import pytest

from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.machine import Machine, bodies, journal_lines


def parked(machine: Machine) -> tuple[Path, str]:
    repo = calc_repo(machine)
    done = machine.scripted(SCRIPTS, "run", "-t", "T-1", cwd=repo)
    assert done.code == 3, done.said
    (session,) = (repo / "memory/sessions").iterdir()
    return repo, session.name


@pytest.mark.slow
def test_a_stopped_session_goes_on_without_the_screen(served: Machine) -> None:
    repo, session = parked(served)
    command = ("sessions", "resume", session[-6:-2], "--headless", "--yes", "--unconfined", "-v")
    done = served.scripted(SCRIPTS, *command, cwd=repo)
    assert done.code == 0, done.said
    assert "session resumed" in done.out
    assert "\n    +    return left + right\n" in done.out, "the diff in full"
    assert "    [Agent] Complete T-1: Make add() add" in done.out
    assert len(bodies(journal_lines(repo), "session_resumed")) == 1
    over = served.agent("sessions", "resume", session, "--headless", cwd=repo)
    assert (over.code, f"session {session} has no task to go on with" in over.err) == (2, True)
    none = served.agent("sessions", "resume", "--headless", cwd=repo)
    assert (none.code, "no session stopped in a task" in none.err) == (2, True)


@pytest.mark.slow
def test_the_newest_that_stopped_is_meant_where_none_is_named(served: Machine) -> None:
    repo, _ = parked(served)
    done = served.scripted(SCRIPTS, "sessions", "resume", "--headless", "--yes", "--unconfined", "--json", cwd=repo)
    assert done.code == 0, done.said
    assert done.of_kind("task_finished")[0]["status"] == "done"


def test_the_screen_needs_a_terminal_and_knows_no_policy(served: Machine) -> None:
    repo, session = parked(served)
    done = served.agent("sessions", "resume", session, cwd=repo)
    assert (done.code, "--headless continues without one" in done.err) == (2, True)
    for flag in ("--yes", "--commands"):
        done = served.agent("sessions", "resume", session, flag, cwd=repo)
        assert (done.code, "add --headless" in done.err) == (2, True)


def test_all_in_short(served: Machine) -> None:
    repo = calc_repo(served)
    done = served.scripted(SCRIPTS, "run", "-a", "--yes", "--unconfined", cwd=repo)
    assert done.code == 0, done.said
    assert "\n    +" not in done.out, "only -v tells it in full"
