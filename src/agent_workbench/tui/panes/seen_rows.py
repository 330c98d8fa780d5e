"""Record of the rows of a list that were on screen, where all of them have to be seen."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from agent_workbench.tui.widgets.rows import Piece, Row


class SeenRows:
    """Rows that were not drawn yet. A row is known by the number of its entry, and by its own number in that."""

    def __init__(self) -> None:
        self._wanted: set[tuple[int, int]] = set()
        self._missing: set[tuple[int, int]] = set()

    @property
    def missing(self) -> int:
        """Number of rows that were not seen."""
        return len(self._missing)

    def marked(self, number: int, rows: Iterable[Row]) -> list[Row]:
        """Return the rows of an entry, marked as such that have to be seen; empty ones need not be."""
        return [
            replace(row, pieces=(Piece(at, 0, row.cells, number, row.cells),)) if row.cells else row
            for at, row in enumerate(rows)
        ]

    def begin(self, rows: Iterable[Row]) -> None:
        """Begin anew with these rows."""
        self._wanted = {key for row in rows for key in _keys(row)}
        self._missing = set(self._wanted)

    def laid_out(self, rows: Iterable[Row]) -> bool:
        """Begin anew and return True if other rows have to be seen now, unless all were seen."""
        if not self._missing or {key for row in rows for key in _keys(row)} == self._wanted:
            return False
        self.begin(rows)
        return True

    def drawn(self, row: Row, left: int, width: int) -> bool:
        """Note that `width` cells of a row were drawn, from cell `left` on; return True if it is seen only now."""
        keys = self._missing.intersection(_keys(row)) if row.cells <= left + width else set()
        self._missing -= keys
        return bool(keys)

    def first_missing(self, rows: Sequence[Row]) -> int:
        """Return the number of the first row that was not seen, -1 if all were."""
        return next((at for at, row in enumerate(rows) if self._missing.intersection(_keys(row))), -1)


def _keys(row: Row) -> list[tuple[int, int]]:
    return [(piece.at, piece.source) for piece in row.pieces]
