"""A program on a pseudo-terminal that is typed to, and all that it paints with the time of each piece.

Nothing is made of the pieces while times are taken: drawing a screen is slow, and would slow the program.
"""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import psutil
import pyte
from msgspec import Struct

from bench.terminal import COLUMNS, DEADLINE_SECONDS, ROWS, NotPaintedError, end

POLL_SECONDS = 0.05


class Region(Struct, frozen=True):
    """A part of the screen: rows and columns from 0, the ends left out."""

    top: int
    left: int
    bottom: int
    right: int


WHOLE = Region(0, 0, ROWS, COLUMNS)


class Typed:
    """`command` in `folder`, on a terminal of its own, 120 columns by 40 rows; it ends with the block."""

    def __init__(self, command: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
        self._terminal, theirs = pty.openpty()
        self.resize(COLUMNS, ROWS)
        shown = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._program = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=shown, start_new_session=True
        )
        os.close(theirs)
        self._pieces: list[tuple[float, bytes]] = []
        self._drawn = 0
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.process = psutil.Process(self._program.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._program, self._terminal)
        self._reading.join(DEADLINE_SECONDS)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._terminal, 65536)
            except OSError:  # Linux says so when the last program has closed the terminal
                return
            if not data:
                return
            self._pieces.append((time.perf_counter(), data))

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the program is told. What is drawn here keeps the size it began with."""
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        """Send what a terminal sends that is closed."""
        os.killpg(self._program.pid, signal.SIGHUP)

    def type(self, keys: str) -> float:
        """Type, and return when."""
        at = time.perf_counter()
        os.write(self._terminal, keys.encode())
        return at

    def draw(self) -> tuple[str, ...]:
        """Return the lines of the screen as it is now."""
        while self._drawn < len(self._pieces):
            self._stream.feed(self._pieces[self._drawn][1])
            self._drawn += 1
        return tuple(self._screen.display)

    def until(self, marker: str, seconds: float = DEADLINE_SECONDS) -> None:
        """Wait until `marker` stands on the screen; raise `NotPaintedError`."""
        deadline = time.monotonic() + seconds
        while not any(marker in line for line in self.draw()):
            if time.monotonic() > deadline or self._program.poll() is not None:
                shown = "\n".join(line.rstrip() for line in self.draw())
                raise NotPaintedError(f"{marker!r} was not painted:\n{shown}")
            time.sleep(POLL_SECONDS)

    def settle(self, quiet_seconds: float = 0.5) -> None:
        """Wait until nothing was painted for so long."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            count = len(self._pieces)
            time.sleep(quiet_seconds)
            if count == len(self._pieces):
                return
        raise NotPaintedError(f"the screen never stood still for {quiet_seconds} s")

    def changes(self, region: Region) -> list[float]:
        """Draw what was painted since `draw`; return when a cell of the region, or its colour, became another."""
        before = self._cells(region)
        found: list[float] = []
        while self._drawn < len(self._pieces):
            at, data = self._pieces[self._drawn]
            self._stream.feed(data)
            self._drawn += 1
            after = self._cells(region)
            if after != before:
                found.append(at)
            before = after
        return found

    def _cells(self, region: Region) -> list[pyte.screens.Char]:
        buffer = self._screen.buffer
        return [
            buffer[row][column]
            for row in range(region.top, region.bottom)
            for column in range(region.left, region.right)
        ]
