"""Record of which lines of a proposal were on screen, each from its first cell to its last."""

from collections.abc import Iterable

from msgspec.structs import replace

from agent_workbench.tui.widgets.rows import Piece, Row


class SeenLines:
    """Counts down as lines are drawn. Lines whose numbers are `exempt` need not be seen."""

    def __init__(self, lines: int = 0, exempt: Iterable[int] = ()) -> None:
        self._unseen = bytearray(b"\1") * lines
        for number in exempt:
            self._unseen[number] = 0
        self._reached: dict[int, int] = {}
        self.missing = self._unseen.count(1)

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self._unseen)

    def drawn(self, piece: Piece, first: int, end: int) -> bool:
        """Note that the cells from `first` to before `end` of a line were drawn; return True if it is seen now.

        Cells after a gap do not count: the gap may never be drawn.
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
        """Return the first line that was not seen, -1 if all were."""
        return self._unseen.find(1)

    def reached(self, source: int) -> int:
        """Return the cell up to which an unseen line was drawn."""
        return self._reached.get(source, 0)


class SeenProposal:
    """Lines seen of a diff, and rows seen of the notes above it, whose sources are negative numbers."""

    def __init__(self, diff: SeenLines | None = None, note_rows: int = 0) -> None:
        self.diff = diff or SeenLines()
        self.notes = SeenLines(note_rows)
        self._reported = self.missing

    @property
    def missing(self) -> int:
        """Number of lines and rows that were not seen."""
        return self.diff.missing + self.notes.missing

    def notes_laid_out(self, rows: int) -> None:
        """Begin anew with the notes if they have another number of rows; notes that were all seen stay so."""
        if rows != self.notes.lines:
            self.notes = SeenLines(rows, () if self.notes.missing else range(rows))

    def drawn(self, row: Row, left: int, width: int) -> bool:
        """Note that `width` cells of a row were drawn, from cell `left` on; return True if a report is due now."""
        known = self.missing
        right = left + width - (row.cells > left + width)
        for piece in row.pieces:
            first = piece.start + min(max(0, left - piece.at), piece.cells)
            end = piece.start + max(0, min(piece.cells, right - piece.at))
            if piece.source >= 0:
                self.diff.drawn(piece, first, end)
            else:
                self.notes.drawn(replace(piece, source=-1 - piece.source), first, end)
        return self.missing < known == self._reported

    def report(self) -> int:
        """Return the number of missing lines for a message; a further report is due when it is less."""
        self._reported = self.missing
        return self._reported
