"""Progress line on standard error that is overwritten; without a terminal nothing is printed."""

import sys
from types import TracebackType
from typing import Self

from agent_workbench.core.repo.retrieval import IndexStatus
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.code.reasons import index_words, vector_words

LINE_CHARS = 78


class ProgressLine:
    """Progress line that shows the latest text and is erased at the end of the block."""

    def __init__(self) -> None:
        # A screen replaces the streams while it is drawn.
        self._stream = sys.stderr
        self._shows = self._stream.isatty()
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.show("")

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        line = sanitize_line(text, LINE_CHARS)
        if self._shows and line != self._shown:
            self._stream.write(f"\r{line.ljust(len(self._shown))}{'' if line else chr(13)}")
            self._stream.flush()
            self._shown = line

    def show_index(self, status: IndexStatus) -> None:
        """Show the progress of an incomplete index."""
        self.show(vector_words(status) if status.complete else " · ".join(index_words(status)))
