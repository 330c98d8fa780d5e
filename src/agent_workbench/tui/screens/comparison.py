"""Two sessions beside each other: what each took and came to, and the diff between their results."""

from collections.abc import Iterable

from textual.binding import Binding
from textual.widget import Widget

from agent_workbench.core.history.comparison import Comparison
from agent_workbench.tui.dialogs.dialog import Dialog
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.diff.diff_pane import ACTIONS_ON_HUNKS, DiffPane
from agent_workbench.views.reports.comparison import view_comparison

HINTS = {"next_change": "next change", "side_by_side": "side by side", "fold": "folds"}


class ComparedDiff(DiffPane, inherit_bindings=False):
    """Diff without a proposal: it has the keys of the diff pane that move, wrap, split and fold."""

    BINDINGS = [
        each
        for each in bindings(Scope.DIFF, Scope.SCROLL)
        if isinstance(each, Binding) and each.action not in ACTIONS_ON_HUNKS
    ]
    scope = Scope.DIFF


class ComparisonScreen(Dialog[None]):
    """Shows a comparison."""

    BINDINGS = bindings(Scope.COMPARISON)

    def __init__(self, comparison: Comparison, keymap: Keymap) -> None:
        self._view = view_comparison(comparison)
        hints = (
            [f"{keymap.first(Scope.DIFF, action)} {said}" for action, said in HINTS.items()] if self._view.diff else []
        )
        hints.append(f"{keymap.first(Scope.COMPARISON, 'close_comparison')} closes")
        super().__init__(self._view.title, "   ".join(hints), name="comparison")

    def body(self) -> Iterable[Widget]:
        return (ComparedDiff(),)

    def on_mount(self) -> None:
        diff = self.query_one(ComparedDiff)
        diff.focus()
        diff.show(self._view)

    def action_close_comparison(self) -> None:
        self.dismiss(None)
