"""Which lines of what waits were on screen, each from its beginning to its end."""

from collections.abc import Iterable

from agent_workbench.tui.widgets.rows import Piece


class Seen:
    """Counts down as lines are drawn; `exempt` are the numbers of those that need not be."""

    def __init__(self, lines: int = 0, exempt: Iterable[int] = ()) -> None:
        self._unseen = bytearray(b"\1") * lines
        for number in exempt:
            self._unseen[number] = 0
        self._reached: dict[int, int] = {}
        self.missing = self._unseen.count(1)

    @property
    def lines(self) -> int:
        """How many lines are known."""
        return len(self._unseen)

    def drawn(self, piece: Piece, first: int, end: int) -> bool:
        """Note that the cells from `first` to before `end` of a line were drawn; True when it is seen by that.

        What is drawn behind a gap does not count: the gap may never be.
        """
        source = piece.source
        if not self._unseen[source]:
            return False
        before = self._reached.get(source, 0)
        if first > before:
            return False
        reached = max(before, end)
        if reached < piece.size:
            self._reached[source] = reached
            return False
        self._unseen[source] = 0
        self._reached.pop(source, None)
        self.missing -= 1
        return True

    def first_missing(self) -> int:
        """Return the first line that was not seen, -1 when all were."""
        return self._unseen.find(1)

    def reached(self, source: int) -> int:
        """Return the cell up to which a line that is missing was drawn."""
        return self._reached.get(source, 0)
