"""Progress on standard error: a line that is overwritten, or without a terminal a new one now and then."""

import re
import sys
import time
from types import TracebackType
from typing import Self

from agent_workbench.cli.output import say_aside, say_last
from agent_workbench.core.repo.retrieval import IndexStatus
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.code.reasons import index_words, vector_words

LINE_CHARS = 78
EACH_SECONDS = 10.0
"""Least time between two lines of progress in a log."""


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
