"""A terminal in front of a command: what is typed reaches it as a person's keys do, Ctrl-C included."""

import os
import pty
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from msgspec import Struct

from tests.e2e.machine import WAIT_SECONDS, Machine

CTRL_C = "\x03"
# The terminal becomes the one that rules the command, so that its keys send signals.
RULED = """\
import fcntl, os, signal, sys, termios
for number in (signal.SIGHUP, signal.SIGINT):  # the tests may run under nohup, or in the background of a shell
    signal.signal(number, signal.SIG_DFL)
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal(Struct):
    """A command and the terminal it runs in; `shown` is all that it printed so far."""

    process: subprocess.Popen[bytes]
    descriptor: int
    shown: str = ""

    def until(self, text: str) -> None:
        """Read until `text` was shown."""
        deadline = time.monotonic() + WAIT_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.descriptor, selectors.EVENT_READ)
            while text not in self.shown:
                assert selector.select(deadline - time.monotonic()), f"never shown: {text!r} in {self.shown!r}"
                self.shown += self._read()

    def _read(self) -> str:
        try:
            data = os.read(self.descriptor, 4096)
        except OSError:  # Linux says so where the other end is closed
            data = b""
        assert data, f"it ended; it showed {self.shown!r}"
        return data.decode(errors="replace")

    def type(self, keys: str) -> None:
        """Type, once the command waits for keys: Python misses a signal between its prompt and its reading."""
        deadline = time.monotonic() + WAIT_SECONDS
        while psutil.Process(self.process.pid).status() != psutil.STATUS_SLEEPING:
            assert time.monotonic() < deadline, "it never waited"
            time.sleep(0.01)  # polled: another process sets no event here
        os.write(self.descriptor, keys.encode())

    def end(self, seconds: float = WAIT_SECONDS) -> int:
        """Return the exit code of the command, which must end within `seconds`."""
        return self.process.wait(seconds)


@contextmanager
def in_terminal(machine: Machine, *arguments: str, cwd: Path, ruled: bool = True) -> Iterator[Terminal]:
    """Run `agent` in a terminal of its own; one that does not rule it sends no signals."""
    ours, theirs = pty.openpty()
    agent = [sys.executable, "-P", "-m", "agent_workbench", *arguments]
    command = [sys.executable, "-P", "-c", RULED, *agent] if ruled else agent
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=machine.environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=not ruled,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)
        os.close(ours)
