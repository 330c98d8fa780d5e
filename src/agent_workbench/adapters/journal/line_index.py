"""The lines of a journal, however long it is."""

from array import array
from collections.abc import Sequence
from typing import overload


class Lines(Sequence[bytes]):
    """The whole lines of a text, without newlines; `torn` is what stands after the last one.

    Each is cut out when it is asked for: a list of all of a long journal's lines would leave its size behind in memory.
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
        """What stands after the last newline."""
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
