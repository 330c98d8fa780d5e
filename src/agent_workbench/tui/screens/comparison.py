"""Comparison of two sessions: their effort and outcome, and the diff between their results."""

from collections.abc import Iterable

from textual.widget import Widget

from agent_workbench.core.history.comparison import Comparison
from agent_workbench.tui.bars.hints import hint_line
from agent_workbench.tui.dialogs.dialog import Dialog
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.diff.diff_pane import ReadOnlyDiff
from agent_workbench.views.reports.comparison import view_comparison

HINTS = {"next_change": "next change", "side_by_side": "side by side", "fold": "fold"}


class ComparisonScreen(Dialog[None]):
    """Shows a comparison."""

    BINDINGS = bindings(Scope.COMPARISON)

    def __init__(self, comparison: Comparison, keymap: Keymap) -> None:
        self._view = view_comparison(comparison)
        hints = [(keymap.first(Scope.DIFF, action), said) for action, said in HINTS.items()] if self._view.diff else []
        hints.append((keymap.first(Scope.COMPARISON, "close_comparison"), "close"))
        super().__init__(self._view.title, hint_line(hints), name="comparison")

    def body(self) -> Iterable[Widget]:
        return (ReadOnlyDiff(),)

    def on_mount(self) -> None:
        diff = self.query_one(ReadOnlyDiff)
        diff.focus()
        diff.show(self._view)

    def action_close_comparison(self) -> None:
        self.dismiss(None)
