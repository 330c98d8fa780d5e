"""Index of a journal's lines, so that each is cut from the text only when it is read."""

from array import array
from collections.abc import Sequence
from typing import overload


class LineIndex(Sequence[bytes]):
    """The complete lines of a text, without newlines.

    A list of all lines would double the memory of a long journal.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._starts = array("q", [0])
        at = text.find(b"\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find(b"\n", at + 1)

    @property
    def torn(self) -> bytes:
        """The bytes after the last newline: an unfinished line."""
        return self._text[self._starts[-1] :]

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[bytes, ...]: ...

    def __getitem__(self, at: int | slice) -> bytes | tuple[bytes, ...]:
        if isinstance(at, slice):
            return tuple(self[number] for number in range(*at.indices(len(self))))
        number = at if at >= 0 else at + len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no line {at} of {len(self)}")
        return self._text[self._starts[number] : self._starts[number + 1] - 1]
