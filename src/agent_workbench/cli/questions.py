"""Questions and progress on the terminal: typed ahead is no answer, and one line is overwritten.

Ask outside of any event loop, so that Ctrl-C ends the question at once.
"""

import re
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from agent_workbench.cli.output import say_aside, say_last
from agent_workbench.core.repo.retrieval import IndexStatus
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.code import index_words, vector_words

LINE_CHARS = 78
EACH_SECONDS = 10.0
"""Least time between two lines of progress in a log."""


def on_terminal() -> bool:
    """Return True if somebody can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def agrees(question: str) -> bool:
    """Ask and return True for a yes; without a terminal nobody is asked, and nobody agrees."""
    return on_terminal() and (typed_line(f"{question} [y/N] ") or "").lower() in {"y", "yes"}


def typed_line(question: str) -> str | None:
    """Ask on the terminal and return the line that is typed, without blanks around it; None at the end of the input."""
    _discard_typed()
    try:
        return input(question).strip()
    except EOFError:
        return None


def chosen_letter(question: str, letters: Mapping[str, str]) -> str:
    """Ask on the terminal until one of the letters is typed, and return it; the end of the input is the last one.

    Anything else prints what each letter means.
    """
    while True:
        said = typed_line(f"{question} [{','.join(letters)},?] ")
        if said is None:
            return [*letters][-1]
        if said.lower() in letters:
            return said.lower()
        print("\n".join(f"{letter} - {meaning}" for letter, meaning in letters.items()))


def chosen_number(question: str, most: int) -> int:
    """Ask for a number up to `most` and return it, 0 for none; without a terminal nobody is asked.

    Enter alone is the first.
    """
    if not on_terminal():
        return 0
    while True:
        said = typed_line(f"{question} [1{f' to {most}' if most > 1 else ''}, n for none] ")
        if said == "":
            return 1
        if said is None or said.lower() in {"n", "no", "none"}:
            return 0
        if said.isascii() and said.isdecimal() and 0 < int(said) <= most:
            return int(said)


def _discard_typed() -> None:
    """Discard what was typed and not read yet."""
    import termios

    with suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


class ProgressLine:
    """Progress line that shows the latest text and is erased at the end of the block.

    Without a terminal, what takes `EACH_SECONDS` or more is printed once in that time.
    """

    def __init__(self) -> None:
        # A screen replaces the streams while it is drawn.
        self._stream = sys.stderr
        self._shows = self._stream.isatty()
        self._shown = ""
        self._printed_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.show("")

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        line = sanitize_line(text, LINE_CHARS)
        if not self._shows:
            if line and time.monotonic() - self._printed_at >= EACH_SECONDS:
                self._printed_at = time.monotonic()
                say_last(line, to=self._stream)
        elif line != self._shown:
            self._stream.write(f"\r{line.ljust(len(self._shown))}{'' if line else chr(13)}")
            self._stream.flush()
            self._shown = line

    def show_index(self, status: IndexStatus) -> None:
        """Show the progress of an incomplete index."""
        self.show(vector_words(status) if status.complete else " · ".join(index_words(status)))


class Remarks:
    """Printer of remarks: one that differs from the last only in its numbers is printed once in `EACH_SECONDS`."""

    def __init__(self) -> None:
        self._last = ""
        self._printed_at = 0.0

    def __call__(self, text: str) -> None:
        """Print the remark on standard error."""
        words = re.sub(r"\d+", "", text)
        if words != self._last or time.monotonic() - self._printed_at >= EACH_SECONDS:
            self._last, self._printed_at = words, time.monotonic()
            say_aside(text)
