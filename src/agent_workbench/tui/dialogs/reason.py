"""Dialog that asks for a reason in one line."""

from collections.abc import Iterable

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from agent_workbench.core.ids import ProposalId
from agent_workbench.core.live import SessionUpdate
from agent_workbench.tui.bars.hints import hint_line
from agent_workbench.tui.dialogs.dialog import Dialog


class ReasonDialog(Dialog[str | None]):
    """Returns the line, which may be empty; None if it was cancelled, or the proposal `about` which it asks is gone."""

    BINDINGS = [Binding("escape", "cancel", "cancel")]

    def __init__(
        self,
        title: str,
        enter: str = "reject and tell the model",
        escape: str = "back to the gate",
        asks: str = "why, in a line; the model reads it",
        text: str = "",
        *,
        about: ProposalId | None = None,
    ) -> None:
        super().__init__(title, hint_line((("Enter", enter), ("Esc", escape))), name="reason")
        self._asks = asks
        self._text = text
        self._about = about

    def show(self, update: SessionUpdate) -> None:
        """Close the dialog if the proposal that it is about does not wait any more: somebody else decided."""
        waiting = update.state.waiting
        if self._about is not None and self.is_mounted and (waiting is None or waiting.id != self._about):
            self.app.notify(f"{self._about} does not wait any more", severity="warning", markup=False)
            self.dismiss(None)

    def body(self) -> Iterable[Widget]:
        return (Input(self._text, placeholder=self._asks, max_length=2000, compact=True),)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        self.dismiss(message.value)

    def action_cancel(self) -> None:
        self.dismiss(None)
