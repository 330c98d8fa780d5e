"""A line on standard error that is written over as something goes on; nothing where that is no terminal."""

import sys
from types import TracebackType
from typing import Self

from agent_workbench.core.retrieval import IndexStatus
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.code.reasons import index_words, vector_words

LINE_CHARS = 78


class ProgressLine:
    """Shows what it is told last; gone when the block ends."""

    def __init__(self) -> None:
        # What draws a screen takes the names of the streams away meanwhile.
        self._stream = sys.stderr
        self._shows = self._stream.isatty()
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.show("")

    def show(self, text: str) -> None:
        """Write `text` in invocation of what stood there."""
        line = sanitize_line(text, LINE_CHARS)
        if self._shows and line != self._shown:
            self._stream.write(f"\r{line.ljust(len(self._shown))}{'' if line else chr(13)}")
            self._stream.flush()
            self._shown = line

    def show_index(self, status: IndexStatus) -> None:
        """Write how far an index is, while it is not complete."""
        self.show(vector_words(status) if status.complete else " · ".join(index_words(status)))
