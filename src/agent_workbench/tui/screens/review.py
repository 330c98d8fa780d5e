"""Review of a task: its changes as one diff, each with the steps that made it."""

from collections.abc import Callable, Iterable

from textual.content import Content
from textual.widget import Widget

from agent_workbench.tui.bars.hints import hint_line
from agent_workbench.tui.dialogs.dialog import Dialog
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.review_list import ReviewList
from agent_workbench.views.diff.review import ReviewView


class ReviewScreen(Dialog[None]):
    """Shows a review as of its opening; `go_to` goes to the step of a change."""

    BINDINGS = bindings(Scope.REVIEW)

    def __init__(self, view: ReviewView, keymap: Keymap, go_to: Callable[[str], None]) -> None:
        keys = {action: keymap.first(Scope.REVIEW, action) for action in ("go_to_step", "close_review")}
        super().__init__(
            f"Review of {view.title}",
            hint_line(((keys["go_to_step"], "go to the step"), (keys["close_review"], "close"))),
            name="review",
        )
        self._view = view
        self._go_to = go_to

    def body(self) -> Iterable[Widget]:
        return (ReviewList(),)

    def on_mount(self) -> None:
        self.query_one(".frame").border_subtitle = Content(self._view.remark)
        reviewed = self.query_one(ReviewList)
        reviewed.focus()
        reviewed.show_review(self._view)

    def action_go_to_step(self) -> None:
        entry = self.query_one(ReviewList).selected
        if entry is not None and entry.key:
            self.dismiss(None)
            self._go_to(entry.key)

    def action_close_review(self) -> None:
        self.dismiss(None)
