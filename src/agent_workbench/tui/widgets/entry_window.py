"""A pane of entries of which only those near the screen are laid out; more are when the user comes to their edge."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.rows import Row, entry_rows
from agent_workbench.views.blocks import Block, Entry, Tone

WINDOW = 300
"""So many entries are laid out at once, and at most three times as many stand while the end is followed."""


class EntryWindow(RowList):
    """Shows entries; those that come are added, those that stand are left alone."""

    label_cells = 0

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.entries: Sequence[Entry] = ()
        self._unsettled: tuple[Entry, ...] = ()
        self._first = 0
        self._starts: list[int] = []
        self._settled_rows = 0
        self._expanded: set[str] = set()
        self._all_expanded = False
        self._empty = ""

    def show_entries(self, entries: Sequence[Entry], unsettled: tuple[Entry, ...] = (), *, empty: str = "") -> None:
        """Show `entries`, then those that may still change. What goes on from before is not laid out again."""
        old, self.entries, before = self.entries, entries, (self._unsettled, self._empty)
        self._unsettled, self._empty = unsettled, empty
        same = entries is old or entries == old
        if same and before == (unsettled, empty):
            return
        self.cursor = min(self.cursor, len(entries) - 1)
        goes_on = bool(old) and len(entries) >= len(old) and entries[len(old) - 1] is old[-1] and entries[0] is old[0]
        has_room = len(entries) - self._first <= 3 * WINDOW
        leaves_old = not has_room and self.follows and self._at_end
        if (same or goes_on) and self._laid_out_width and not leaves_old:
            reaches = has_room and self._end >= len(old)
            settled = self._settled_rows
            self._add(len(entries) if reaches else self._end, self._laid_out_width)
            self.rows_changed(settled)
        else:
            self.lay_out_again()

    @property
    def _end(self) -> int:
        """The number after that of the last entry that is laid out."""
        return self._first + len(self._starts)

    def lay_out(self, width: int) -> None:
        follows, count = self.follows and self._at_end, len(self.entries)
        size = WINDOW if follows else max(WINDOW, len(self._starts))
        first = count - size if follows else min(self._first, count - size)
        self._lay_out_from(max(0, first), size, width)

    def _lay_out_from(self, first: int, size: int, width: int) -> None:
        self.rows, self._starts, self._settled_rows, self._first = [], [], 0, first
        self._add(min(len(self.entries), first + size), width)

    def _add(self, end: int, width: int) -> None:
        """Lay out the entries behind those that are, up to `end`, and what is not settled behind the last of all."""
        del self.rows[self._settled_rows :]
        for number in range(self._end, end):
            self._starts.append(len(self.rows))
            self.rows += self.rows_of(number, self.entries[number], width)
        self._settled_rows = len(self.rows)
        for entry in self._unsettled if self._end == len(self.entries) else ():
            self.rows += entry_rows(entry, len(self.entries), width, self.label_cells, expanded=False)
        if not self.rows and self._empty:
            self.rows += entry_rows(Entry("", (Block(self._empty, Tone.DIM),)), -1, width, 0, expanded=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._end < len(self.entries):
            self._at_end = False
            if new_value >= self.max_scroll_y > 0:
                self.call_later(self._show_later)
        if new_value <= 0 < old_value and self._first:
            self.call_later(self._show_earlier)

    def _show_later(self) -> None:
        """Lay out more entries at the end, if that is still on screen."""
        if self._end < len(self.entries) and self.scroll_y >= self.max_scroll_y:
            self._add(min(len(self.entries), self._end + WINDOW), self._laid_out_width)
            self.rows_changed()

    def _show_earlier(self) -> None:
        """Lay out more entries at the beginning; what is on screen stays where it is."""
        if self._first:
            rows, starts, settled, top = self.rows, self._starts, self._settled_rows, self.scroll_offset.y
            more = min(WINDOW, self._first)
            self._lay_out_from(self._first - more, more, self._laid_out_width)
            before = len(self.rows)
            self.rows += rows
            self._starts += [before + start for start in starts]
            self._settled_rows = before + settled
            self.rows_changed()
            self.scroll_to(y=before + top, animate=False, immediate=True)

    def _bring_in(self, number: int) -> None:
        """Lay out what is around an entry, if it is not laid out yet; -1 is no entry."""
        if number < 0:
            return
        if self._first - WINDOW <= number < self._first:
            self._show_earlier()
        elif not self._first <= number < self._end:
            self._lay_out_from(max(0, min(number, len(self.entries)) - WINDOW // 2), WINDOW, self._laid_out_width)
            self.rows_changed()

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        """Return the rows of an entry."""
        return entry_rows(entry, number, width, self.label_cells, expanded=self.is_expanded(entry))

    def is_expanded(self, entry: Entry) -> bool:
        """Return whether an entry is shown in full."""
        return self._all_expanded != (entry.key in self._expanded)

    def _place(self, number: int) -> tuple[int, int]:
        at = number - self._first
        end = self._starts[at + 1] if at + 1 < len(self._starts) else self._settled_rows
        return self._starts[at], end

    def _at(self, row: int) -> int:
        return max(0, min(self._first + bisect_right(self._starts, row) - 1, len(self.entries) - 1))
