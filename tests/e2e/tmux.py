"""tmux around a command: a window of any size, keys, what is on the screen, and clients that come and go."""

import contextlib
import fcntl
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from msgspec import Struct

from tests.e2e.machine import WAIT_SECONDS, Machine

HAS_TMUX = shutil.which("tmux") is not None


class Tmux(Struct, frozen=True):
    """A tmux server of its own with one window, in which `agent` runs in `folder`."""

    machine: Machine
    folder: Path

    def run(self, *words: str) -> str:
        """Have tmux do something and return what it prints."""
        command = ["tmux", "-f", os.devnull, "-S", str(self.machine.folder / "tmux"), *words]
        done = self.machine.run(command, self.folder)
        assert done.code == 0, done.said
        return done.out

    def start(self, *arguments: str, columns: int, rows: int) -> None:
        """Start `agent` in a window of this size, which stays when it ends."""
        command = [sys.executable, "-P", "-m", "agent_workbench", *arguments]
        self.run("new-session", "-d", "-x", str(columns), "-y", str(rows), *command, ";", "set", "remain-on-exit", "on")

    def start_shell(self, columns: int, rows: int) -> None:
        """Start a shell in a window of this size."""
        self.run("new-session", "-d", "-x", str(columns), "-y", str(rows), "bash", "--norc", "--noprofile")

    def start_again(self, *arguments: str, folder: Path) -> None:
        """Start `agent` in the same window, in a folder; what ran there has ended."""
        self.ends()
        command = [sys.executable, "-P", "-m", "agent_workbench", *arguments]
        self.run("respawn-pane", "-c", str(folder), *command)

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self.run("send-keys", *keys)

    @property
    def screen(self) -> str:
        """What is on the screen."""
        return self.run("capture-pane", "-p")

    @property
    def size(self) -> tuple[int, int]:
        """The window's columns and rows."""
        columns, rows = self.run("display-message", "-p", "#{window_width} #{window_height}").split()
        return int(columns), int(rows)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def process(self) -> psutil.Process:
        """The command that runs."""
        return psutil.Process(int(self.run("display-message", "-p", "#{pane_pid}")))

    @property
    def process_lives(self) -> bool:
        """Whether the command has not ended."""
        return self.run("display-message", "-p", "#{pane_dead}").strip() == "0"

    def ends(self) -> None:
        """Wait until the command has ended."""
        self.until(lambda: not self.process_lives, "the end")

    def shows(self, *words: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until all of this is on the screen at once."""
        what = " and ".join(words)
        self.until(lambda: all(word in screen for screen in (self.screen,) for word in words), what, seconds)

    def skip_tour(self) -> None:
        """Wait for the tour, and leave it."""
        self.shows("skip the tour: Esc")
        self.press("Escape")
        self.until(lambda: "skip the tour" not in self.screen, "the screen without the tour")

    def until(self, holds: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until something holds, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"never: {what}; on screen:\n{self.screen}"
            time.sleep(0.05)  # polled: what another process draws sets no event here

    @contextmanager
    def client(self, columns: int, rows: int) -> Iterator[None]:
        """Attach a terminal of this size, and detach it."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        command = ["tmux", "-S", str(self.machine.folder / "tmux"), "attach"]
        environ = {**self.machine.environ, "TERM": "xterm-256color"}
        client = subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        try:
            self.run("set", "window-size", "latest")
            self.until(lambda: self.run("list-clients").strip() != "", "the client")
            yield
            self.run("detach-client")
            os.set_blocking(ours, False)
            self.until(lambda: _read(ours) or client.poll() is not None, "the client's end")
            assert client.returncode == 0
        finally:
            client.kill()
            client.wait(WAIT_SECONDS)
            os.close(ours)


def _read(terminal: int) -> bool:
    """Read what a client has drawn, without which it does not end; return False."""
    with contextlib.suppress(OSError):  # there is nothing now, or the other end is closed
        while os.read(terminal, 65536):
            pass
    return False


@contextmanager
def tmux(machine: Machine, folder: Path) -> Iterator[Tmux]:
    """Give a tmux server of its own, and end it with all that runs in it."""
    server = Tmux(machine, folder)
    try:
        yield server
    finally:
        machine.run(["tmux", "-S", str(machine.folder / "tmux"), "kill-server"], folder)
