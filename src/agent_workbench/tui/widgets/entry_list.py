"""List widget whose entries can be selected and expanded; only rows near the screen are laid out."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from textual import events

from agent_workbench.tui.widgets.row_list import RowList
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


class EntryList(RowList):
    """Shows entries, one of them selected (`cursor`, -1: none). Entries that are unchanged are not laid out again."""

    label_cells = 0

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._window = EntryRows(self.rows_of, self.label_cells)
        self._moves = EntryCursor(self, self._window)
        self.rows = self._window.rows
        self._expanded: set[str] = set()
        self._all_expanded = False

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, without the unsettled ones."""
        return self._window.entries

    def show_entries(self, entries: Sequence[Entry], unsettled: tuple[Entry, ...] = (), *, empty: str = "") -> None:
        """Show `entries`, then those that may still change; `empty` if there are none."""
        window = self._window
        old, window.entries, before = window.entries, entries, (window.unsettled, window.empty)
        window.unsettled, window.empty = unsettled, empty
        same = entries is old or entries == old
        if same and before == (unsettled, empty):
            return
        self.cursor = min(self.cursor, len(entries) - 1)
        continues = bool(old) and len(entries) >= len(old) and entries[len(old) - 1] is old[-1] and entries[0] is old[0]
        drops_old = not window.has_room and self.follows and self._end.reached
        if (same or continues) and self._laid_out_width and not drops_old:
            self.rows_changed(window.add_new(len(old), self._laid_out_width))
        else:
            self.lay_out_again()

    def lay_out(self, width: int) -> None:
        self._window.lay_out(width, at_end=self.follows and self._end.reached)

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        """Return the rows of an entry."""
        return entry_rows(entry, number, width, self.label_cells, expanded=self.is_expanded(entry))

    def is_expanded(self, entry: Entry) -> bool:
        """Return True if an entry is shown in full."""
        return self._all_expanded != (entry.key in self._expanded)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._window.end < len(self.entries):
            self._end.reached = False
            if new_value >= self.max_scroll_y > 0:
                self.call_later(self._show_later)
        if new_value <= 0 < old_value and self._window.first:
            self.call_later(self._show_earlier)

    def _show_later(self) -> None:
        """Lay out more entries at the end, if that is still on screen."""
        if self._window.end < len(self.entries) and self.scroll_y >= self.max_scroll_y:
            self._window.add_after(self._laid_out_width)
            self.rows_changed()

    def _show_earlier(self) -> None:
        """Lay out more entries at the beginning; what is on screen stays where it is."""
        if self._window.first:
            top = self.scroll_offset.y
            added = self._window.add_before(self._laid_out_width)
            self.rows_changed()
            self.scroll_to(y=added + top, animate=False, immediate=True)

    def bring_in(self, number: int) -> None:
        """Lay out the entries around one of them, if it is not laid out yet; -1 is no entry."""
        first = self._window.first
        if number < 0 or first <= number < self._window.end:
            return
        if first - WINDOW <= number < first:
            self._show_earlier()
        else:
            self._window.lay_out_around(number, self._laid_out_width)
            self.rows_changed()

    @property
    def selected(self) -> Entry | None:
        """The selected entry."""
        return self.entries[self.cursor] if 0 <= self.cursor < len(self.entries) else None

    def select(self, number: int) -> None:
        """Select an entry and scroll to it."""
        self._moves.to(number)

    def scroll_to_selected(self) -> None:
        """Scroll so that the selected entry is at the top."""
        self.scroll_to(y=self._window.rows_range(self.cursor)[0], animate=False)

    def select_topmost(self) -> None:
        """Select the first entry on screen if none is selected."""
        if self.cursor < 0:
            self.select(self._window.entry_at(self.scroll_offset.y))

    def selection_changed(self) -> None:
        """Hook: another entry is selected."""

    def action_line_down(self) -> None:
        self._moves.down()

    def action_line_up(self) -> None:
        self._moves.up()

    def action_page_down(self) -> None:
        super().action_page_down()
        self._moves.into_view()

    def action_page_up(self) -> None:
        super().action_page_up()
        self._moves.into_view()

    def action_to_top(self) -> None:
        self.select(0)
        self.scroll_to(y=0, animate=False)

    def action_to_bottom(self) -> None:
        self.select(len(self.entries) - 1)
        self.action_to_bottom_row()

    def action_to_bottom_row(self) -> None:
        """Scroll to the last row."""
        self.bring_in(len(self.entries) - 1)
        super().action_to_bottom()

    def action_expand(self) -> None:
        self.select_topmost()
        entry = self.selected
        if entry is not None:
            self._expanded ^= {entry.key}
            self.lay_out_again()
            self.select(self.cursor)

    def action_expand_all(self) -> None:
        self._all_expanded = not self._all_expanded
        self._expanded.clear()
        self.lay_out_again()
        if self.cursor >= 0:
            self.select(self.cursor)

    def text_here(self) -> str:
        """Return the text of the selected entry, also where it is folded; all text if none is selected."""
        entry = self.selected
        return super().text_here() if entry is None else "\n".join(block.text for block in entry.blocks)

    def on_click(self, event: events.Click) -> None:
        """Select the clicked entry, or expand it if it is selected. The end of a text selection is no click."""
        offset = event.get_content_offset(self)
        if offset is None or not self.entries or self.text_selection is not None:
            return
        row = offset.y + self.scroll_offset.y
        if row >= len(self.rows) or not 0 <= self.rows[row].item < len(self.entries):
            return
        if self.rows[row].item == self.cursor:
            self.action_expand()
        else:
            self.select(self.rows[row].item)


class EntryCursor:
    """Moves of the cursor of an entry list."""

    def __init__(self, entries: EntryList, window: EntryRows) -> None:
        self._list = entries
        self._window = window

    def to(self, number: int) -> None:
        """Select an entry, or the nearest one there is, and scroll to it."""
        shown = self._list
        if not shown.entries:
            return
        shown.cursor = max(0, min(number, len(shown.entries) - 1))
        shown.bring_in(shown.cursor)
        first, end = self._window.rows_range(shown.cursor)
        top, height = shown.scroll_offset.y, shown.room.height
        if first < top:
            shown.scroll_to(y=first, animate=False)
        elif end > top + height:
            shown.scroll_to(y=min(first, end - height), animate=False)
        self._changed()

    def down(self) -> None:
        """Select the next entry; scroll line by line through one that is taller than the list."""
        shown = self._list
        if not shown.entries:
            return
        shown.bring_in(shown.cursor)
        if shown.cursor < 0:
            shown.select_topmost()
        elif self._window.rows_range(shown.cursor)[1] > shown.scroll_offset.y + shown.room.height:
            shown.scroll_relative(y=1, animate=False)
        elif shown.cursor + 1 < len(shown.entries):
            self.to(shown.cursor + 1)
        else:
            shown.action_to_bottom_row()

    def up(self) -> None:
        """Select the entry before; scroll line by line through one that is taller than the list."""
        shown = self._list
        if not shown.entries:
            return
        shown.bring_in(shown.cursor)
        if shown.cursor < 0:
            self.to(self._window.entry_at(shown.scroll_offset.y + shown.room.height - 1))
        elif self._window.rows_range(shown.cursor)[0] < shown.scroll_offset.y:
            shown.scroll_relative(y=-1, animate=False)
        else:
            self.to(shown.cursor - 1)

    def into_view(self) -> None:
        """Select an entry on screen after the list was scrolled."""
        shown = self._list
        if shown.cursor >= 0 and shown.entries:
            top = shown.scroll_offset.y
            lowest, highest = (self._window.entry_at(row) for row in (top, top + shown.room.height - 1))
            shown.cursor = max(lowest, min(shown.cursor, highest))
            self._changed()

    def _changed(self) -> None:
        self._list.refresh()
        self._list.selection_changed()
