"""Typist in front of a real shell on a pseudo-terminal, who types what a page says and reads what comes."""

import codecs
import fcntl
import os
import pty
import re
import selectors
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

from tests.docs.pages import Keys, Part, Scene, Shell, Shows, missing
from tests.e2e.terminal import RULED

WAIT_SECONDS = 300.0
QUIET_SECONDS = 0.2
FRAME_SECONDS = 2.0
COLUMNS, ROWS = 80, 24
# Shows the exit code of a command that failed.
PROMPT = "${?#0}$ "
NAMES = {"Enter": "\r", "Esc": "\x1b", "Tab": "\t", "Space": " "}
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78])|\r| \x08")
_SCREENS = re.compile(rb"(\x1b\[\?1049[hl])")
_TOO_QUICK = "too quick"

Heard = Callable[[str, float], None]


class NeverShownError(AssertionError):
    """What the page says never came on the screen."""


class Typist:
    """A shell in `folder`, ended with the block. `heard` gets each piece of output with the seconds before it."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *,
        size: tuple[int, int] = (COLUMNS, ROWS),
        heard: Heard = lambda text, seconds: None,
        reading_seconds: float = 0.0,
        key_seconds: float = 0.0,
    ) -> None:
        """A person reads for `reading_seconds` before a key and types one in `key_seconds`; nothing really waits."""
        self._heard, self._reading_seconds, self._key_seconds = heard, reading_seconds, key_seconds
        columns, rows = size
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        shown = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PS1": PROMPT}
        self._shell = subprocess.Popen(
            [sys.executable, "-P", "-c", RULED, "/bin/sh", "-i"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=shown,
        )
        os.close(theirs)
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lines = [""] * rows  # kept, because drawing them takes long
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._terminal, selectors.EVENT_READ)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._printed = b""
        self._pause = 0.0

    def __enter__(self) -> Self:
        self._until(self._at_prompt, "a prompt")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        os.close(self._terminal)  # hangs up: the shell ends with what runs in it
        self._shell.wait(WAIT_SECONDS)

    @property
    def screen(self) -> str:
        """Text of the screen."""
        return "\n".join(self._lines)

    @property
    def printed(self) -> str:
        """All that was printed since the last block of commands began, without control codes."""
        return _ESCAPES.sub("", self._printed.decode(errors="replace"))

    def play(self, scenes: Sequence[Scene], begin: Callable[[str], None] = lambda film: None) -> None:
        """Type a page's parts in their order, and check what they show; `begin` is told of each film that begins."""
        parts: list[Part] = [scene.part for scene in scenes]
        for number, scene in enumerate(scenes):
            if scene.film:
                begin(scene.film)
            match scene.part:
                case Shell(body):
                    after = [part for part in parts[number + 1 :] if not isinstance(part, Shows)]
                    self._run(body, opens=bool(after) and isinstance(after[0], Keys))
                case Keys() as keys:
                    self._press(keys, leaves=number + 1 == len(parts) or isinstance(parts[number + 1], Shell))
                case Shows() as shows:
                    found = self.printed if self._at_prompt() else self.screen
                    assert not missing(shows, found), f"not shown: {missing(shows, found)}; but:\n{found}"

    def _run(self, body: str, *, opens: bool) -> None:
        """Type lines; the last one opens a screen if `opens`. Fails where a command does."""
        self._printed = b""
        lines = body.splitlines()
        for number, line in enumerate(lines):
            self._pause = self._reading_seconds if number == 0 else 0.0
            before = len(self._printed)
            self._type(line)
            self._type("\r")
            if not (opens and number + 1 == len(lines)):
                ready = self._at_prompt if _whole(lines[: number + 1]) else self._at_more
                self._until(lambda: b"\n" in self._printed[before:] and ready(), f"a prompt after {line}")  # noqa: B023

    def _press(self, keys: Keys, *, leaves: bool) -> None:
        for number, row in enumerate(keys.rows):
            for key in row.keys if number else ():
                self._read_frame()
                self._pause = self._reading_seconds
                self._type(NAMES.get(key, key), whole=key in NAMES)
            if leaves and number + 1 == len(keys.rows):
                self._until(self._at_prompt, "the prompt")
                continue
            self._until_shown(row.words, NAMES.get(row.keys[-1], row.keys[-1]) if number else "")

    def _read_frame(self) -> None:
        """Read what is still to come of a screen that somebody reads: its words may come before the rest of it."""
        deadline = time.monotonic() + FRAME_SECONDS
        while self._reading_seconds and time.monotonic() < deadline and self._selector.select(QUIET_SECONDS):
            if not self._read():
                return

    def _until_shown(self, words: Sequence[str], key: str) -> None:
        """Wait until all words are on the screen; press `key` again where the gate says that it came too quickly."""

        def again() -> None:
            if key and _TOO_QUICK in self.screen:
                os.write(self._terminal, key.encode())

        self._until(lambda: all(word in self.screen for word in words), " and ".join(words), again)

    def _type(self, text: str, *, whole: bool = False) -> None:
        for piece in [text] if whole else text:
            os.write(self._terminal, piece.encode())
            self._pause += self._key_seconds
            if self._key_seconds and self._selector.select(QUIET_SECONDS):  # a film shows each letter come
                self._read()

    def _until(self, holds: Callable[[], bool], what: str, quiet: Callable[[], None] = lambda: None) -> None:
        """Read until something holds; `quiet` is called whenever nothing came for a moment."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds():
            if not self._selector.select(QUIET_SECONDS):
                quiet()
            elif not self._read():
                deadline = 0.0
            if time.monotonic() > deadline:
                raise NeverShownError(f"never shown: {what}; on screen:\n{self.screen}")

    def _read(self) -> bool:
        """Read what has come; return False when the shell has ended."""
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux says so when the last program has closed the terminal
            data = b""
        for part in _SCREENS.split(data):  # pyte has one screen: what a program left on its own one is cleared
            if _SCREENS.fullmatch(part):
                self._screen.reset()
            self._stream.feed(part)
        self._lines = [line.rstrip() for line in self._screen.display]
        self._printed += data
        self._heard(self._decoder.decode(data), self._pause)
        self._pause = 0.0
        return bool(data)

    def _at_prompt(self) -> bool:
        cursor = self._screen.cursor
        line = self._lines[cursor.y]
        assert not re.fullmatch(r"\d+\$", line), f"a command failed:\n{self.screen}"
        return line == "$" and cursor.x == 2

    def _at_more(self) -> bool:
        cursor = self._screen.cursor
        return self._lines[cursor.y] == ">" and cursor.x == 2


def _whole(lines: Sequence[str]) -> bool:
    """Return True if no here-document is open at the end of these lines."""
    end = ""
    for line in lines:
        if end:
            end = "" if line == end else end
        elif found := re.search(r"<<'?(\w+)'?", line):
            end = found[1]
    return not end
