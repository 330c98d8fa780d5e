"""Screen on which text in rows can be selected with the mouse."""

from typing import TypeVar

from textual.geometry import Offset
from textual.screen import Screen
from textual.widget import Widget

from agent_workbench.tui.widgets.row_list import RowList

Result = TypeVar("Result")


class SelectableScreen(Screen[Result]):
    """Knows which cell of which row is under the mouse, and ends a selection once it is copied."""

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the widget at a position and the cell in it; lists of rows know the cell without being drawn."""
        widget, _ = self.get_widget_at(x, y)
        if isinstance(widget, RowList):
            return widget, widget.offset_at(x, y)
        return super().get_widget_and_offset_at(x, y)

    def action_copy_text(self) -> None:
        super().action_copy_text()
        self.clear_selection()
