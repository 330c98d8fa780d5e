"""Diff pane: a proposed diff whose hunks and lines can be selected, else the running action or the applied diff."""

from collections.abc import Mapping

from textual import events
from textual.binding import Binding

from agent_workbench.tui.keys import Scope, bindings
from agent_workbench.tui.panes.diff_cursor import DiffCursor
from agent_workbench.tui.panes.diff_viewer import DiffViewer
from agent_workbench.tui.panes.hunk_actions import HunkActions
from agent_workbench.views.blocks import Block
from agent_workbench.views.gate.proposal_views import DiffView

ACTIONS_ON_HUNKS = frozenset({"take_hunk", "select_lines", "why_left", "edit_hunk", "edit_hunk_outside", "result"})
_USELESS_IN_RESULT = ACTIONS_ON_HUNKS - {"result"}


class DiffPane(DiffViewer):
    """Shows a `DiffView`; a proposed diff has a cursor and a selection of hunks, without them keys scroll."""

    BINDINGS = bindings(Scope.DIFF, Scope.SCROLL)
    scope = Scope.DIFF

    def __init__(self) -> None:
        super().__init__()
        self._cursor = DiffCursor(self)
        self.hunks = self.diff.marks = HunkActions(self, self._cursor)

    @property
    def counts(self) -> bool:
        return super().counts and not self.hunks.shows_result

    @property
    def useless(self) -> frozenset[str]:
        """Actions that do nothing now; the gate bar gives no hints for them."""
        return _USELESS_IN_RESULT if self.hunks.shows_result else frozenset()

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of actions that do something else than usual now."""
        return {"result": "all of it"} if self.hunks.shows_result else {}

    def show(self, view: DiffView) -> None:
        if view.key == self.view.key:
            if not self.hunks.shows_result:
                super().show(view)
            return
        edited = self.hunks.is_edited_by(view)
        hunk = self.hunks.hunk_here() if edited else -1
        before = self.hunks.reset()
        super().show(view)
        if view.by_hunk:
            self.hunks.begin(view, before if edited else None, hunk)

    def notes(self) -> tuple[Block, ...]:
        return self.hunks.result_notes() if self.hunks.shows_result else super().notes()

    def show_unseen(self) -> None:
        if self.hunks.shows_result:
            self.hunks.toggle_result()
        super().show_unseen()

    def text_here(self) -> str:
        """Return the selected lines, the hunk under the cursor, or all of the diff."""
        return self._cursor.selected_text() if self._cursor.active else self.view.diff or super().text_here()

    def on_focus(self) -> None:
        self._cursor.draw()

    def on_blur(self) -> None:
        self._cursor.leave()

    def key_escape(self, event: events.Key) -> None:
        """Give a range up first; without one the key leaves the pane."""
        if self._cursor.give_up_range():
            event.stop()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked line."""
        offset = event.get_content_offset(self)
        if offset is not None and self.diff.marks.visible and self.text_selection is None:
            self._cursor.point_to(self.line_of(self.scroll_offset.y + offset.y))

    def action_line_down(self) -> None:
        if not self._cursor.down():
            super().action_line_down()

    def action_line_up(self) -> None:
        if not self._cursor.up():
            super().action_line_up()

    def action_page_down(self) -> None:
        super().action_page_down()
        self._cursor.into_view()

    def action_page_up(self) -> None:
        super().action_page_up()
        self._cursor.into_view()

    def action_to_top(self) -> None:
        super().action_to_top()
        self._cursor.to_first()

    def action_to_bottom(self) -> None:
        super().action_to_bottom()
        self._cursor.to_last()

    def action_next_change(self) -> None:
        self._cursor.to_next_change()

    def action_previous_change(self) -> None:
        self._cursor.to_previous_change()

    def action_fold(self) -> None:
        self._cursor.fold()

    def action_select_lines(self) -> None:
        self._cursor.toggle_range()

    def action_take_hunk(self) -> None:
        self.hunks.toggle()

    def action_why_left(self) -> None:
        self.hunks.change_reason()

    def action_result(self) -> None:
        self.hunks.toggle_result()

    def action_edit_hunk(self) -> None:
        self.hunks.edit(outside=False)

    def action_edit_hunk_outside(self) -> None:
        self.hunks.edit(outside=True)


class ReadOnlyDiff(DiffPane, inherit_bindings=False):
    """Diff without selection, with those keys of the diff pane that move, wrap, split and fold."""

    BINDINGS = [
        each
        for each in bindings(Scope.DIFF, Scope.SCROLL)
        if isinstance(each, Binding) and each.action not in ACTIONS_ON_HUNKS
    ]
