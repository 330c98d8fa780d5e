"""A pane of entries that can be selected and expanded."""

from textual import events

from agent_workbench.tui.widgets.entry_window import EntryWindow
from agent_workbench.views.blocks import Entry


class EntryList(EntryWindow):
    """Shows entries, one of them selected (`cursor`, -1: none)."""

    @property
    def selected(self) -> Entry | None:
        """The selected entry."""
        return self.entries[self.cursor] if 0 <= self.cursor < len(self.entries) else None

    def select(self, number: int) -> None:
        """Select an entry and bring it into view."""
        if not self.entries:
            return
        self.cursor = max(0, min(number, len(self.entries) - 1))
        self._bring_in(self.cursor)
        first, end = self._place(self.cursor)
        top, height = self.scroll_offset.y, self.room.height
        if first < top:
            self.scroll_to(y=first, animate=False)
        elif end > top + height:
            self.scroll_to(y=min(first, end - height), animate=False)
        self.refresh()
        self.selection_changed()

    def selection_changed(self) -> None:
        """Hear that another entry is selected."""

    def action_line_down(self) -> None:
        """Select the next entry; one that is taller than the pane is gone through line by line first."""
        if not self.entries:
            return
        self._bring_in(self.cursor)
        if self.cursor < 0:
            self.select(self._at(self.scroll_offset.y))
        elif self._place(self.cursor)[1] > self.scroll_offset.y + self.room.height:
            self.scroll_relative(y=1, animate=False)
        elif self.cursor + 1 < len(self.entries):
            self.select(self.cursor + 1)
        else:
            self.action_to_bottom_row()

    def action_line_up(self) -> None:
        if not self.entries:
            return
        self._bring_in(self.cursor)
        if self.cursor < 0:
            self.select(self._at(self.scroll_offset.y + self.room.height - 1))
        elif self._place(self.cursor)[0] < self.scroll_offset.y:
            self.scroll_relative(y=-1, animate=False)
        else:
            self.select(self.cursor - 1)

    def action_page_down(self) -> None:
        super().action_page_down()
        self._follow_scroll()

    def action_page_up(self) -> None:
        super().action_page_up()
        self._follow_scroll()

    def action_to_top(self) -> None:
        self.select(0)
        self.scroll_to(y=0, animate=False)

    def action_to_bottom(self) -> None:
        self.select(len(self.entries) - 1)
        self.action_to_bottom_row()

    def action_to_bottom_row(self) -> None:
        """Scroll to the very end."""
        self._bring_in(len(self.entries) - 1)
        super().action_to_bottom()

    def action_expand(self) -> None:
        if self.cursor < 0:
            self.select(self._at(self.scroll_offset.y))
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
        """Return the text of the selected entry, all of it however it is folded; without one all there is."""
        entry = self.selected
        return super().text_here() if entry is None else "\n".join(block.text for block in entry.blocks)

    def on_click(self, event: events.Click) -> None:
        """Select what was clicked; a click on what is selected expands it. Where text was selected it is no click."""
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

    def _follow_scroll(self) -> None:
        if self.cursor >= 0 and self.entries:
            top = self.scroll_offset.y
            lowest, highest = self._at(top), self._at(top + self.room.height - 1)
            self.cursor = max(lowest, min(self.cursor, highest))
            self.refresh()
            self.selection_changed()
