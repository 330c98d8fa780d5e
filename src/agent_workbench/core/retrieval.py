"""Pieces of code that a search brings, and why they came."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines `first_line` to `last_line` (from 1, inclusive) of a file, as they were when they were found.

    `why` holds the words of the query that hit, best first; `tokens` is an estimate until the server counts.
    """

    path: str
    first_line: int
    last_line: int
    text: str
    score: float
    symbol: str = ""
    why: tuple[str, ...] = ()
    tokens: int = 0

    @property
    def place(self) -> str:
        """`path:first-last`."""
        return f"{self.path}:{self.first_line}-{self.last_line}"
