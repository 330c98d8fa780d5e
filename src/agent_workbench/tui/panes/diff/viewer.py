"""A diff that is looked at: how much of it was on screen, and the keys that bring other parts of it there."""

from dataclasses import dataclass

from msgspec.structs import replace
from textual.message import Message

from agent_workbench.tui.panes.diff.rendering import DiffShowing
from agent_workbench.tui.panes.diff.seen_lines import Seen
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.diff.shown_diff import context_folds
from agent_workbench.views.gate.diff_pane import DiffView

STEP_CELLS = 8


class DiffLooking(DiffShowing):
    """A line counts as seen when it was drawn from its beginning to its end."""

    @dataclass
    class Looked(Message, namespace="diff_pane"):
        """More of what waits was on screen; so many lines were not yet."""

        unseen: int

    def __init__(self) -> None:
        super().__init__()
        self._seen, self._notes_seen = Seen(), Seen()
        self._told = 0

    @property
    def counts(self) -> bool:
        """True while what is drawn is what has to be seen."""
        return bool(self._view.proposal)

    def show(self, view: DiffView) -> None:
        new = view.key != self._view.key
        super().show(view)
        if new:
            # Unchanged lines that fold stand in the file already; all others have to be seen.
            folded = (number for run in context_folds(self._shown) for number in range(*run))
            self._seen, self._notes_seen = Seen(len(self._shown.lines), folded), Seen(len(self.rows))
            self._told = -1
            self._tell()

    def lay_out(self, width: int) -> None:
        super().lay_out(width)
        if len(self.rows) != self._notes_seen.lines and self.counts:
            # Rows of notes have no other name than their numbers, which mean others now. All that were seen stay so.
            self._notes_seen = Seen(len(self.rows), () if self._notes_seen.missing else range(len(self.rows)))

    def row_shown(self, row: Row, left: int, width: int) -> None:
        """Note how far the lines of a row were drawn, if nothing stands before them."""
        if not row.pieces or not self.unseen or not self.counts or self.app.screen is not self.screen:
            return
        right = left + width - (row.cells > left + width)
        done = False
        for piece in row.pieces:
            first = piece.start + min(max(0, left - piece.at), piece.cells)
            end = piece.start + max(0, min(piece.cells, right - piece.at))
            if piece.source >= 0:
                done = self._seen.drawn(piece, first, end) or done
            else:
                note = replace(piece, source=-1 - piece.source)
                done = self._notes_seen.drawn(note, first, end) or done
        if done and self._told >= 0:
            self._told = -1
            self.call_later(self._tell)

    def _tell(self) -> None:
        """Say how much is missing, once for all that was drawn together."""
        if self._told < 0:
            self._told = self.unseen
            self.post_message(self.Looked(self.unseen))

    @property
    def unseen(self) -> int:
        """How many lines of what waits were not on screen in full yet."""
        return self._seen.missing + self._notes_seen.missing if self._view.proposal else 0

    @property
    def shown_proposal(self) -> str:
        """The key of the proposal that is shown, empty when none is."""
        return self._view.proposal

    def show_unseen(self) -> None:
        """Bring the first of what was not seen on screen; unfold it, wrap lines if it is behind the edge."""
        note, line = self._notes_seen.first_missing(), self._seen.first_missing()
        if note >= 0:
            self.scroll_to(x=0, y=note, animate=False)
            return
        if line < 0:
            return
        file, reached = self._shown.lines[line].file, self._seen.reached(line)
        if file in self._files or (not self._wraps and reached):
            self._wraps = self._wraps or bool(reached)
            self._files -= {file}
            self.lay_out_again()
        self.scroll_to(x=0, y=self._row_at_cell(line, reached), animate=False)

    def _row_at_cell(self, line: int, cell: int) -> int:
        """Return the row in which a line has this cell."""
        first = self.row_of(line)
        rows = range(first, first + self._layout.height(self._layout.shown_line(line))) if cell else ()
        for row in rows:
            if any(
                piece.source == line and piece.start <= cell < piece.start + piece.cells
                for piece in self.row_at(row).pieces
            ):
                return row
        return first

    def action_wrap(self) -> None:
        self._wraps = not self._wraps
        self.scroll_to(x=0, animate=False)
        self.lay_out_again()

    def action_side_by_side(self) -> None:
        top = self.line_of(self.scroll_offset.y)
        self._split = not self.split_for(self.room.width)
        self.lay_out_again()
        if top > 0:
            self.scroll_to(x=0, y=self.row_of(top), animate=False)

    def action_go_right(self) -> None:
        self.scroll_relative(x=STEP_CELLS, animate=False)

    def action_go_left(self) -> None:
        self.scroll_relative(x=-STEP_CELLS, animate=False)

    def action_next_change(self) -> None:
        top = self.scroll_offset.y
        self._go_to(next((row for row in map(self.row_of, self.changes()) if row > top), None))

    def action_previous_change(self) -> None:
        top = self.scroll_offset.y
        self._go_to(next((row for row in map(self.row_of, reversed(self.changes())) if row < top), None))

    def _go_to(self, row: int | None) -> None:
        if row is not None:
            self.scroll_to(y=row, animate=False)

    def fold_at(self, line: int) -> None:
        """Fold the file of this line, or unfold what is folded there."""
        if line < 0:
            return
        if line in self._layout.folds:
            self._folds ^= {line}
        elif inside := next((first for first, end in self._layout.folds.items() if first < line < end), 0):
            self._folds -= {inside}
        elif self._shown.lines[line].file >= 0:
            self._files ^= {self._shown.lines[line].file}
        self.lay_out_again()

    def action_fold(self) -> None:
        self.fold_at(self.line_of(self.scroll_offset.y))
