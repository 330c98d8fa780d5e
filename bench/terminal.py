"""A program on a pseudo-terminal: what it paints, and when."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

import pyte
from msgspec import Struct

COLUMNS, ROWS = 120, 40
QUIET_SECONDS = 0.4
DEADLINE_SECONDS = 30.0
END_SECONDS = 10.0


class Painting(Struct, frozen=True):
    """Seconds from the start to the first byte, and to the first screen with the marker on it; that screen's lines."""

    first_byte_seconds: float
    painted_seconds: float
    screen: tuple[str, ...]


class NotPaintedError(Exception):
    """The marker never came on the screen."""


def paint(command: Sequence[str], marker: str, folder: str, environment: Mapping[str, str]) -> Painting:
    """Start `command` in `folder`, wait until `marker` (in any case) stands on the screen, and end it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    shown = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    started = time.perf_counter()
    program = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=shown, start_new_session=True
    )
    os.close(theirs)
    try:
        chunks, ended = _chunks(ours, started, marker)
        if ended:
            raise NotPaintedError(f"the program ended with {program.wait(END_SECONDS)}: {_text(chunks)}")
        return _painted(chunks, marker)
    finally:
        end(program, ours)


def _chunks(terminal: int, started: float, marker: str) -> tuple[list[tuple[float, bytes]], bool]:
    """Return what came and when, until it is quiet with the marker shown; True beside it when the program has ended."""
    found: list[tuple[float, bytes]] = []
    while time.perf_counter() - started < DEADLINE_SECONDS:
        readable, _, _ = select.select([terminal], [], [], QUIET_SECONDS)
        if not readable:
            if found and _first_with(found, marker):  # only now: a screen is slow to draw, and would slow the program
                return found, False
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux says so when the last program has closed the terminal
            return found, True
        if not data:
            return found, True
        found.append((time.perf_counter() - started, data))
    return found, False


def _painted(chunks: list[tuple[float, bytes]], marker: str) -> Painting:
    found = _first_with(chunks, marker)
    if found is None:
        raise NotPaintedError(f"{marker!r} was not painted: {_text(chunks)}")
    return Painting(chunks[0][0], *found)


def _text(chunks: list[tuple[float, bytes]]) -> str:
    text = b"".join(data for _, data in chunks).decode("utf-8", "replace")
    return repr(text[-1000:])


def _first_with(chunks: list[tuple[float, bytes]], marker: str) -> tuple[float, tuple[str, ...]] | None:
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    for seconds, data in chunks:
        stream.feed(data)
        if any(marker.lower() in line.lower() for line in screen.display):
            return seconds, tuple(screen.display)
    return None


def end(program: "subprocess.Popen[bytes]", terminal: int) -> None:
    """End a program and all that it started, and close its terminal."""
    deadline = time.monotonic() + END_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)
    while program.poll() is None and time.monotonic() < deadline:
        readable, _, _ = select.select([terminal], [], [], 0.05)  # what it still paints must not hold it up
        with contextlib.suppress(OSError):
            if readable and not os.read(terminal, 65536):
                break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    os.close(terminal)
