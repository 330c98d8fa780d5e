"""A cursor on a diff: by line, by hunk, and over a range of lines."""

from collections.abc import Iterator

from textual import events

from agent_workbench.tui.panes.diff.viewer import DiffLooking
from agent_workbench.tui.widgets.rows import SIGNS

MARGIN_ROWS = 2


class DiffPointing(DiffLooking):
    """Has a cursor while parts of the diff can be taken and the pane has the focus; without it, keys scroll."""

    def __init__(self) -> None:
        super().__init__()
        self._at = -1
        self._anchor = -1
        self._marked = (-1, -1)

    @property
    def _points(self) -> bool:
        return self.marks and self.has_focus

    def pointed(self, number: int) -> bool:
        if not self._points:
            return False
        first, last = self._range()
        partner = self._layout.partner.get(number, number) if self._layout.look.split else number
        return first <= number <= last or first <= partner <= last

    def _range(self) -> tuple[int, int]:
        anchor = self._at if self._anchor < 0 else self._anchor
        return min(anchor, self._at), max(anchor, self._at)

    def _point_to(self, line: int) -> None:
        self._at = self._layout.shown_line(line) if self._shown.lines else -1
        self._pointer_moved()

    def _pointer_moved(self) -> None:
        self.cursor = self._at if self._points else -1
        now = self._range()
        for first, last in (self._marked, now):
            self._drawn.forget_lines(range(first, last + 1))
        self._marked = now
        self.refresh()

    def on_focus(self) -> None:
        self._pointer_moved()

    def on_blur(self) -> None:
        self._anchor = -1
        self._pointer_moved()

    def key_escape(self, event: events.Key) -> None:
        """Give a range up first; without one the key leaves the pane."""
        if self._points and self._anchor >= 0:
            self.action_select_lines()
            event.stop()

    def on_click(self, event: events.Click) -> None:
        """Point to what was clicked."""
        offset = event.get_content_offset(self)
        if offset is not None and self.marks and self.text_selection is None:
            line = self.line_of(self.scroll_offset.y + offset.y)
            self._point_to(min(line, len(self._shown.lines) - 1))

    def _move(self, to: int) -> None:
        """Point to another line and bring it on screen."""
        self._point_to(max(0, min(to, len(self._shown.lines) - 1)))
        row, top, height = self.row_of(self._at), self.scroll_offset.y, self.room.height
        last = row + self._layout.height(self._at) - 1
        if self._at == 0:
            self.scroll_to(y=0, animate=False)
        elif row < top + MARGIN_ROWS:
            self.scroll_to(y=row - MARGIN_ROWS, animate=False)
        elif last > top + height - 1 - MARGIN_ROWS:
            self.scroll_to(y=min(row, last - height + 1 + MARGIN_ROWS), animate=False)

    def action_line_down(self) -> None:
        if not self._points:
            super().action_line_down()
            return
        row = self.row_of(self._at) - len(self.rows) + self._layout.height(self._at)
        if row < self._layout.row_count:
            self._move(self._layout.line_at(row)[0])

    def action_line_up(self) -> None:
        if not self._points:
            super().action_line_up()
            return
        row = self.row_of(self._at) - len(self.rows)
        self._move(self._layout.line_at(row - 1)[0] if row > 0 else 0)

    def action_page_down(self) -> None:
        super().action_page_down()
        self._point_into_view()

    def action_page_up(self) -> None:
        super().action_page_up()
        self._point_into_view()

    def action_to_top(self) -> None:
        super().action_to_top()
        if self._points:
            self._move(0)

    def action_to_bottom(self) -> None:
        super().action_to_bottom()
        if self._points:
            self._move(len(self._shown.lines) - 1)

    def _point_into_view(self) -> None:
        """Keep the cursor on screen when the pane was scrolled."""
        if self._points:
            top = self.scroll_target_y
            row = min(max(self.row_of(self._at), top), top + self.room.height - 1)
            self._point_to(min(self.line_of(int(row)), len(self._shown.lines) - 1))

    def action_next_change(self) -> None:
        if self._points:
            self._to_change(next((line for line in self.changes() if line > self._at), -1))
        else:
            super().action_next_change()

    def action_previous_change(self) -> None:
        if self._points:
            self._to_change(next((line for line in reversed(self.changes()) if line < self._at), -1))
        else:
            super().action_previous_change()

    def _to_change(self, line: int) -> None:
        """Point to the header of a hunk, and show as much of that hunk as there is room for."""
        if line < 0:
            return
        self._move(line)
        end = line
        while end + 1 < len(self._shown.lines) and self._shown.lines[end + 1].hunk == self._shown.lines[line].hunk:
            end += 1
        row, last = self.row_of(line), self.row_of(end) + self._layout.height(end) - 1
        if last > self.scroll_target_y + self.room.height - 1:
            self.scroll_to(y=min(row - 1, last - self.room.height + 1), animate=False)

    def action_fold(self) -> None:
        if self._points:
            self.fold_at(self._at)
            self._move(self._at)
        else:
            super().action_fold()

    def action_select_lines(self) -> None:
        """Begin a range of lines at the cursor, or give it up."""
        if self._points:
            self._anchor = self._at if self._anchor < 0 else -1
            self._pointer_moved()

    def text_here(self) -> str:
        """Return the lines of the range as in the file, the hunk under the cursor as a diff, or all of it."""
        lines = self._shown.lines
        if not self._points:
            return self._view.diff or super().text_here()
        if self._anchor >= 0:
            return "\n".join(lines[number].text for number in sorted(self.selected()))
        here = lines[self._at]
        hunk = [each for each in lines if each.file == here.file and each.hunk == here.hunk]
        return "\n".join(each.text if each.at < 0 else f"{SIGNS.get(each.tone, ' ')}{each.text}" for each in hunk)

    def selected(self) -> Iterator[int]:
        """Yield the lines of the range, with those beside them."""
        first, last = self._range()
        for number in range(first, last + 1):
            yield number
            if self._layout.look.split and number in self._layout.partner:
                yield self._layout.partner[number]
