"""The workbench in a terminal that goes away, or in a process that is asked to end: it ends, and nothing is lost."""

import fcntl
import itertools
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.calc import calc_repo
from tests.e2e.machine import WAIT_SECONDS, WHOLE, Machine, bodies, journal_lines
from tests.e2e.terminal import Terminal, in_terminal

pytestmark = pytest.mark.slow

ENDED = 130
PAGE_BYTES = 4096
# An app that writes more than a terminal takes which nobody reads, changes, and ends when it is told to.
FLOOD = """\
import os, sys
from threading import Thread
from textual.widgets import Static
from agent_workbench.tui.terminal_app import TerminalApp

class Flood(TerminalApp[None]):
    def compose(self):
        yield Static("before", id="text")

    def on_ready(self) -> None:
        for _ in range(100):
            self.write_control(" " * 4096)
        self.query_one("#text", Static).update("after the gap")
        self.call_after_refresh(print, "flooded", file=sys.__stdout__, flush=True)
        Thread(target=self.end, daemon=True).start()

    def end(self) -> None:
        os.read(int(sys.argv[1]), 1)
        self.call_later(self.exit)

Flood().run()
os._exit(7)
"""
# A process whose main thread waits for what never comes, once in a lock and once in a write.
BLOCKED = """\
import asyncio, os, signal, sys
from threading import Lock
from agent_workbench.server_process import hear_signals

def wait_for_a_lock() -> None:
    lock = Lock()
    lock.acquire()
    lock.acquire()

def write_to_a_full_pipe() -> None:
    _, full = os.pipe()
    while True:
        os.write(full, b"x" * 65536)

async def main() -> None:
    hear_signals([signal.SIGHUP], lambda number: print("the loop is not blocked"))
    print("ready", flush=True)
    globals()[sys.argv[1]]()

asyncio.run(main())
"""


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
    left = bodies(journal_lines(shop), "session_left")
    # On a busy machine a terminal that is gone is not waited for until the session has recorded its end.
    assert left == [{"reason": f"ended by {reason}"}] or (left == [] and end is close)
    assert machine.agent("sessions", "verify", cwd=shop).code in WHOLE


def served_page(machine: Machine, repo: Path) -> subprocess.Popen[bytes]:
    """Start the workbench as the web server does, with a pipe that holds less than a frame."""
    command = [sys.executable, "-P", "-m", "agent_workbench", "tui", "--served"]
    size = {"COLUMNS": "120", "ROWS": "40"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        cwd=repo,
        env={**machine.environ, **size},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        pipesize=2 * PAGE_BYTES,
    )


def is_full(page: subprocess.Popen[bytes]) -> bool:
    """Return whether the pipe that a process writes to takes nothing more.

    Its unread bytes do not say: a page of it that was read in part stays taken, and a write that does not fit into the
    rest of the last page waits for another.
    """
    writer = os.open(f"/proc/{page.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [writer], [], 0)[1]
    finally:
        os.close(writer)


def hang_up(page: subprocess.Popen[bytes]) -> None:
    """Close the server's ends of the pipes, as its end by SIGKILL does."""
    for pipe in (page.stdin, page.stdout, page.stderr):
        assert pipe is not None
        pipe.close()


@pytest.mark.parametrize("end", [hang_up, subprocess.Popen.terminate], ids=["server gone", "asked to end"])
def test_a_page_that_nobody_reads_ends(end: object, tmp_path: Path) -> None:
    assert callable(end)
    machine = Machine(tmp_path / "home")
    repo = calc_repo(machine)
    assert machine.agent("init", cwd=repo).code == 0
    with served_page(machine, repo) as page:
        assert page.stdin is not None
        assert page.stdout is not None
        Terminal(page, page.stdout.fileno()).until("next is T-1")
        widths = itertools.cycle(range(100, 120))  # sizes that come together are drawn once
        while not is_full(page):
            packet = json.dumps({"type": "resize", "width": next(widths), "height": 30}).encode()
            page.stdin.write(b"M" + len(packet).to_bytes(4, "big") + packet)
            page.stdin.flush()
            time.sleep(0.01)  # polled: another process sets no event here
        end(page)
        assert page.wait(WAIT_SECONDS) == ENDED
    assert machine.agent("sessions", "verify", cwd=repo).code in WHOLE


def test_a_terminal_that_takes_nothing_blocks_no_app_and_shows_all_when_it_reads_again() -> None:
    ours, theirs = pty.openpty()
    told, tell = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", FLOOD, str(told)], stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, pass_fds=[told]
    ) as process:
        os.close(theirs)
        terminal = Terminal(process, ours)
        terminal.until("before")
        assert process.stdout is not None
        assert process.stdout.readline() == b"flooded\n"
        terminal.until("after the gap")
        os.write(tell, b"x")
        assert terminal.end() == 7
    for each in (ours, told, tell):
        os.close(each)


@pytest.mark.parametrize("wait", ["wait_for_a_lock", "write_to_a_full_pipe"])
def test_a_signal_ends_a_process_whatever_it_waits_for(wait: str) -> None:
    with subprocess.Popen([sys.executable, "-c", BLOCKED, wait], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGHUP)
        assert process.wait(WAIT_SECONDS) == ENDED
        assert process.stdout.read() == b""


def test_what_kept_a_session_from_being_opened_is_said_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home")
    repo = calc_repo(machine)
    assert machine.agent("init", cwd=repo).code == 0
    with in_terminal(machine, "tui", "--session", "zzz", cwd=repo) as terminal:
        fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        terminal.until("agent: no session begins with 'zzz'")
        assert terminal.end(10) == 2
    assert terminal.shown.count("no session begins with 'zzz'") == 1


def test_ctrl_z_goes_to_the_shell_and_its_fg_draws_all_of_the_screen(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home")
    with in_terminal(machine, "demo", "--folder", str(tmp_path / "shop"), cwd=tmp_path) as terminal:
        fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        terminal.until("skip the tour: Esc")
        terminal.until("nothing runs")
        terminal.shown = ""
        terminal.type("\x1b")
        terminal.until("T-2")  # only once the tour is gone: Esc and the next key at once are one key
        terminal.type("\x1a")
        deadline = time.monotonic() + WAIT_SECONDS
        while psutil.Process(terminal.process.pid).status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < deadline, "it was never suspended"
            time.sleep(0.01)  # polled: another process sets no event here
        terminal.shown = ""
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until("T-2")  # in the plan, where nothing changed
        close(terminal)
        assert terminal.end(10) == ENDED
