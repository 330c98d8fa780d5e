"""Cursor on a diff: on one line, or over a range of lines."""

from collections.abc import Iterator

from agent_workbench.tui.panes.diff_viewer import DiffViewer
from agent_workbench.tui.widgets.rows import SIGNS

MARGIN_ROWS = 2


class DiffCursor:
    """Moves over the lines of a viewer while it is `active`. `at` is its line, `anchor` the other end of the range.

    While it is not active, moves scroll the viewer, or return False so that the caller does.
    """

    def __init__(self, viewer: DiffViewer) -> None:
        self.at = -1
        self.anchor = -1
        self._viewer = viewer
        self._drawn = (-1, -1)

    @property
    def active(self) -> bool:
        """True while lines have marks and the viewer has the focus."""
        return self._viewer.diff.marks.visible and self._viewer.has_focus

    def reset(self) -> None:
        """Leave the lines of an earlier diff."""
        self.at = self.anchor = -1

    def covers(self, number: int) -> bool:
        """Return True if the cursor or the range is on a line, or on the line beside it."""
        if not self.active:
            return False
        first, last = self._range()
        layout = self._viewer.diff.layout
        partner = layout.partner.get(number, number) if layout.look.split else number
        return first <= number <= last or first <= partner <= last

    def _range(self) -> tuple[int, int]:
        anchor = self.at if self.anchor < 0 else self.anchor
        return min(anchor, self.at), max(anchor, self.at)

    def selected(self) -> Iterator[int]:
        """Yield the lines of the range, with those beside them."""
        first, last = self._range()
        layout = self._viewer.diff.layout
        for number in range(first, last + 1):
            yield number
            if layout.look.split and number in layout.partner:
                yield layout.partner[number]

    def selected_text(self) -> str:
        """Return the lines of the range as in the file; without a range the hunk under the cursor as a diff."""
        lines = self._viewer.diff.shown.lines
        if self.anchor >= 0:
            return "\n".join(lines[number].text for number in sorted(self.selected()))
        here = lines[self.at]
        hunk = [each for each in lines if each.file == here.file and each.hunk == here.hunk]
        return "\n".join(each.text if each.at < 0 else f"{SIGNS.get(each.tone, ' ')}{each.text}" for each in hunk)

    def point_to(self, line: int) -> None:
        """Put the cursor on a line, or on the one that it is folded into."""
        diff = self._viewer.diff
        self.at = diff.layout.shown_line(min(line, len(diff.shown.lines) - 1)) if diff.shown.lines else -1
        self.draw()

    def draw(self) -> None:
        """Draw the lines anew that the cursor left or came to."""
        self._viewer.cursor = self.at if self.active else -1
        now = self._range()
        for first, last in (self._drawn, now):
            self._viewer.diff.forget_lines(range(first, last + 1))
        self._drawn = now
        self._viewer.refresh()

    def move(self, to: int) -> None:
        """Put the cursor on a line and scroll to it."""
        viewer = self._viewer
        self.point_to(max(0, to))
        row, top, height = viewer.row_of(self.at), viewer.scroll_offset.y, viewer.room.height
        last = row + viewer.diff.layout.height(self.at) - 1
        if self.at == 0:
            viewer.scroll_to(y=0, animate=False)
        elif row < top + MARGIN_ROWS:
            viewer.scroll_to(y=row - MARGIN_ROWS, animate=False)
        elif last > top + height - 1 - MARGIN_ROWS:
            viewer.scroll_to(y=min(row, last - height + 1 + MARGIN_ROWS), animate=False)

    def down(self) -> bool:
        """Go to the next line."""
        if not self.active:
            return False
        diff = self._viewer.diff
        row = diff.first_row(self.at) + diff.layout.height(self.at)
        if row < diff.row_count:
            self.move(diff.line_at(row))
        return True

    def up(self) -> bool:
        """Go to the line before."""
        if not self.active:
            return False
        row = self._viewer.diff.first_row(self.at)
        self.move(self._viewer.diff.line_at(row - 1) if row > 0 else 0)
        return True

    def into_view(self) -> None:
        """Put the cursor on a line on screen after the viewer was scrolled."""
        if self.active:
            top = int(self._viewer.scroll_target_y)
            row = min(max(self._viewer.row_of(self.at), top), top + self._viewer.room.height - 1)
            self.point_to(self._viewer.line_of(row))

    def to_first(self) -> None:
        """Go to the first line."""
        if self.active:
            self.move(0)

    def to_last(self) -> None:
        """Go to the last line."""
        if self.active:
            self.move(len(self._viewer.diff.shown.lines) - 1)

    def to_next_change(self) -> None:
        """Go to the next hunk or file."""
        if self.active:
            self.to_change(next((line for line in self._viewer.diff.changes() if line > self.at), -1))
        else:
            self._scroll_to(row for row in self._change_rows() if row > self._viewer.scroll_offset.y)

    def to_previous_change(self) -> None:
        """Go to the hunk or file before."""
        if self.active:
            self.to_change(next((line for line in reversed(self._viewer.diff.changes()) if line < self.at), -1))
        else:
            self._scroll_to(row for row in reversed(self._change_rows()) if row < self._viewer.scroll_offset.y)

    def _change_rows(self) -> list[int]:
        return [self._viewer.row_of(line) for line in self._viewer.diff.changes()]

    def _scroll_to(self, rows: Iterator[int]) -> None:
        row = next(rows, None)
        if row is not None:
            self._viewer.scroll_to(y=row, animate=False)

    def to_change(self, line: int) -> None:
        """Go to the header of a hunk, and show as much of that hunk as there is room for; -1 is no line."""
        viewer, lines = self._viewer, self._viewer.diff.shown.lines
        if line < 0:
            return
        self.move(line)
        end = line
        while end + 1 < len(lines) and lines[end + 1].hunk == lines[line].hunk:
            end += 1
        row, last = viewer.row_of(line), viewer.row_of(end) + viewer.diff.layout.height(end) - 1
        if last > viewer.scroll_target_y + viewer.room.height - 1:
            viewer.scroll_to(y=min(row - 1, last - viewer.room.height + 1), animate=False)

    def fold(self) -> None:
        """Fold the file under the cursor, the reviewed files, or the one at the top; or unfold what is folded there."""
        if self.active:
            self._viewer.toggle_fold(self.at)
            self.move(self.at)
        elif reviewed := self._viewer.view.folded:
            self._viewer.diff.toggle_files(reviewed)
            self._viewer.lay_out_again()
        else:
            self._viewer.toggle_fold(self._viewer.line_of(self._viewer.scroll_offset.y))

    def toggle_range(self) -> None:
        """Begin a range of lines at the cursor, or give it up."""
        if self.active:
            self.anchor = self.at if self.anchor < 0 else -1
            self.draw()

    def give_up_range(self) -> bool:
        """Give the range up; return whether there was one."""
        given_up = self.active and self.anchor >= 0
        if given_up:
            self.toggle_range()
        return given_up

    def leave(self) -> None:
        """Give the range up and hide the cursor: the viewer lost the focus."""
        self.anchor = -1
        self.draw()
