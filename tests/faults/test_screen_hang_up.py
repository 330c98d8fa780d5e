"""The workbench in a terminal that goes away, or in a process that is asked to end: it ends, and nothing is lost."""

import fcntl
import os
import signal
import struct
import termios
from pathlib import Path

import psutil
import pytest

from tests.e2e.calc import calc_repo
from tests.e2e.machine import WHOLE, Machine, bodies, journal_lines
from tests.e2e.terminal import Terminal, in_terminal

ENDED = 130


def close(terminal: Terminal) -> None:
    """Close our end of the terminal, as a window that is closed does."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, terminal.descriptor)
    os.close(nowhere)


def ask_to_end(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("end", "code", "reason", "ruled"),
    [(close, ENDED, "SIGHUP", True), (close, ENDED, "SIGHUP", False), (ask_to_end, 0, "SIGTERM", True)],
    ids=["closed", "closed without a signal", "asked to end"],
)
def test_the_workbench_ends_with_its_terminal(
    end: object, code: int, reason: str, *, ruled: bool, tmp_path: Path
) -> None:
    assert callable(end)
    machine = Machine(tmp_path / "home")
    shop = tmp_path / "shop"
    with in_terminal(machine, "demo", "--folder", str(shop), cwd=tmp_path, ruled=ruled) as terminal:
        fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        # Only what comes after the model answered proves that the session lives behind the screen.
        terminal.until("demo-model")
        family = psutil.Process(terminal.process.pid).children(recursive=True)
        end(terminal)
        if end is ask_to_end:
            terminal.until("is kept")
        assert terminal.end(10) == code
    assert [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    assert bodies(journal_lines(shop), "session_left") == [{"reason": f"ended by {reason}"}]
    assert machine.agent("sessions", "verify", cwd=shop).code in WHOLE


def test_what_kept_a_session_from_being_opened_is_said_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home")
    repo = calc_repo(machine)
    assert machine.agent("init", cwd=repo).code == 0
    with in_terminal(machine, "tui", "--session", "zzz", cwd=repo) as terminal:
        fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        terminal.until("agent: no session begins with 'zzz'")
        assert terminal.end(10) == 2
    assert terminal.shown.count("no session begins with 'zzz'") == 1
