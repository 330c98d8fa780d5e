"""Questions that verbs ask at the terminal: yes, no, and Ctrl-C."""

import pytest

from tests.adapters.git.fingerprint import fingerprint
from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.machine import Machine
from tests.e2e.terminal import CTRL_C, in_terminal

AT_ONCE_SECONDS = 5.0
RISKY = {".agent.yml": "test_command: make everything\n"}
TRUST_QUESTION = "trust exactly this? [y/N] "


def test_ctrl_c_at_the_merge_ends_it_at_once(served: Machine) -> None:
    repo = calc_repo(served)
    done = served.scripted(SCRIPTS, "run", "--task", "T-1", "--yes", cwd=repo)
    assert done.code == 0, done.said
    before = fingerprint(repo)
    with in_terminal(served, "merge", "T-1", cwd=repo) as terminal:
        terminal.until("(T-1) into main? [y/N] ")
        terminal.type(CTRL_C)
        assert terminal.end(AT_ONCE_SECONDS) == 130
        assert "Traceback" not in terminal.shown
    assert fingerprint(repo) == before


@pytest.mark.parametrize(
    ("keys", "code", "trusted"), [("y\n", 0, True), ("\n", 3, False), ("n\n", 3, False), (CTRL_C, 130, False)]
)
def test_trust_is_asked_for(machine: Machine, keys: str, code: int, *, trusted: bool) -> None:
    repo = calc_repo(machine, RISKY)
    with in_terminal(machine, "trust", cwd=repo) as terminal:
        terminal.until(TRUST_QUESTION)
        assert "make everything" in terminal.shown
        terminal.type(keys)
        assert terminal.end(AT_ONCE_SECONDS) == code
    shown = machine.agent("trust", "--show", cwd=repo)
    assert ("nothing left to trust" in shown.out) is trusted


def test_trust_where_nobody_can_be_asked_takes_a_yes_in_the_command_alone(machine: Machine) -> None:
    repo = calc_repo(machine, RISKY)
    parked = machine.agent("trust", cwd=repo)
    assert parked.code == 3
    assert "make everything" in parked.out
    assert "agent trust --yes" in parked.err
    assert "make everything" in machine.agent("trust", "--show", cwd=repo).out
    done = machine.agent("trust", "--yes", cwd=repo)
    assert (done.code, done.err) == (0, "")
    assert "nothing left to trust" in machine.agent("trust", cwd=repo).out
