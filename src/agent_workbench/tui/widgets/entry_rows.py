"""Virtual layout of an `EntryList`: keeps the rows of the entries near the screen."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from agent_workbench.tui.widgets.rows import Row, entry_rows
from agent_workbench.views.blocks import Block, Entry, Tone

WINDOW = 300
"""Number of entries that are laid out at once; up to three times as many stay while the end is followed."""


class EntryRows:
    """Rows of a window of entries. `unsettled` entries follow the last one and may still change.

    `rows_of` returns the rows of an entry for a width.
    """

    def __init__(self, rows_of: Callable[[int, Entry, int], Iterable[Row]], label_cells: int) -> None:
        self.rows: list[Row] = []
        self.entries: Sequence[Entry] = ()
        self.unsettled: tuple[Entry, ...] = ()
        self.empty = ""
        self.first = 0
        self._rows_of = rows_of
        self._label_cells = label_cells
        self._starts: list[int] = []
        self._settled_rows = 0

    @property
    def end(self) -> int:
        """Number after that of the last entry that is laid out."""
        return self.first + len(self._starts)

    @property
    def has_room(self) -> bool:
        """True while entries can be added without dropping earlier ones."""
        return len(self.entries) - self.first <= 3 * WINDOW

    def lay_out(self, width: int, *, at_end: bool) -> None:
        """Lay out as many entries as before for another width, or the last ones."""
        count = len(self.entries)
        size = WINDOW if at_end else max(WINDOW, len(self._starts))
        first = count - size if at_end else min(self.first, count - size)
        self._lay_out_from(max(0, first), size, width)

    def lay_out_around(self, number: int, width: int) -> None:
        """Lay out the entries around one of them."""
        self._lay_out_from(max(0, min(number, len(self.entries)) - WINDOW // 2), WINDOW, width)

    def add_before(self, width: int) -> int:
        """Lay out more entries before the first one; return the number of rows that were added."""
        rows, starts, settled = list(self.rows), self._starts, self._settled_rows
        more = min(WINDOW, self.first)
        self._lay_out_from(self.first - more, more, width)
        before = len(self.rows)
        self.rows += rows
        self._starts += [before + start for start in starts]
        self._settled_rows = before + settled
        return before

    def add_after(self, width: int) -> None:
        """Lay out more entries behind the last one."""
        self._add(min(len(self.entries), self.end + WINDOW), width)

    def add_new(self, known: int, width: int) -> int:
        """Lay out entries that came after the first `known` ones; return the first row that changed."""
        settled = self._settled_rows
        self._add(len(self.entries) if self.has_room and self.end >= known else self.end, width)
        return settled

    def _lay_out_from(self, first: int, size: int, width: int) -> None:
        self.rows.clear()
        self._starts, self._settled_rows, self.first = [], 0, first
        self._add(min(len(self.entries), first + size), width)

    def _add(self, end: int, width: int) -> None:
        """Lay out entries up to `end`, and the unsettled ones if the last entry is laid out."""
        del self.rows[self._settled_rows :]
        for number in range(self.end, end):
            self._starts.append(len(self.rows))
            self.rows += self._rows_of(number, self.entries[number], width)
        self._settled_rows = len(self.rows)
        for entry in self.unsettled if self.end == len(self.entries) else ():
            self.rows += entry_rows(entry, len(self.entries), width, self._label_cells, expanded=False)
        if not self.rows and self.empty:
            self.rows += entry_rows(Entry("", (Block(self.empty, Tone.DIM),)), -1, width, 0, expanded=True)

    def rows_range(self, number: int) -> tuple[int, int]:
        """Return the first row of an entry, and the row after its last one."""
        at = number - self.first
        end = self._starts[at + 1] if at + 1 < len(self._starts) else self._settled_rows
        return self._starts[at], end

    def entry_at(self, row: int) -> int:
        """Return the number of the entry that has a row."""
        return max(0, min(self.first + bisect_right(self._starts, row) - 1, len(self.entries) - 1))
