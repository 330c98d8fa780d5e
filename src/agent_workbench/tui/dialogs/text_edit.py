"""Dialog to edit a text: a diff, a command, a commit message, notes."""

from collections.abc import Iterable

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import TextArea

from agent_workbench.tui.bars.hints import hint_line
from agent_workbench.tui.dialogs.dialog import Dialog

SAVE_KEYS = (("Ctrl-S", "save"), ("Esc", "discard"))


class EditDialog(Dialog[str | None]):
    """Returns the saved text, None if it was cancelled."""

    BINDINGS = [
        Binding("ctrl+s", "save", "save", priority=True),
        Binding("escape", "cancel", "cancel", priority=True),
    ]

    def __init__(self, title: str, text: str, remark: str, *, wraps: bool = False, at_end: bool = False) -> None:
        super().__init__(title, f"{hint_line(SAVE_KEYS)}   {remark}", name="edit")
        self._text = text
        self._wraps = wraps
        self._at_end = at_end

    def body(self) -> Iterable[Widget]:
        return (
            TextArea(self._text, soft_wrap=self._wraps, show_line_numbers=True, tab_behavior="indent", compact=True),
        )

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        if self._at_end:
            area.move_cursor(area.document.end)

    def action_save(self) -> None:
        self.dismiss(self.query_one(TextArea).text)

    def action_cancel(self) -> None:
        self.dismiss(None)
