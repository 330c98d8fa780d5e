"""Dialog that asks a yes or no question."""

from collections.abc import Iterable, Sequence

from textual import events
from textual.binding import Binding
from textual.widget import Widget

from agent_workbench.core.ports.machine import Clock
from agent_workbench.tui.dialogs.dialog import Dialog, text_body
from agent_workbench.tui.widgets.readiness import Readiness, queued_seconds

SHOWN = "shown"


class ConfirmDialog(Dialog[bool]):
    """Returns True for yes, False for no. A yes counts only after the question was on screen for a moment."""

    BINDINGS = [
        Binding("y", "yes", "yes"),
        Binding("n,escape,q", "no", "no"),
    ]

    def __init__(
        self, title: str, lines: Sequence[str], clock: Clock, *, yes: str = "yes", no: str = "no", name: str = "confirm"
    ) -> None:
        super().__init__(title, f"y {yes}   n {no}", name=name)
        self._lines = lines
        self._answers = f"y {yes}   n {no}"
        self._readiness = Readiness(clock)
        self._pressed_at: float | None = None

    def body(self) -> Iterable[Widget]:
        return (text_body(self._lines),)

    def on_mount(self) -> None:
        self.call_after_refresh(self._readiness.painted, SHOWN)

    def on_key(self, event: events.Key) -> None:
        """Remember when the key was pressed; Textual looks up bindings after this."""
        self._pressed_at = event.time

    def action_yes(self) -> None:
        queued = queued_seconds(self._pressed_at)
        if self._readiness.ready(SHOWN, queued):
            self.dismiss(True)
        else:
            self.show_keys(f"too quick: read it first   {self._answers}")

    def action_no(self) -> None:
        self.dismiss(False)
