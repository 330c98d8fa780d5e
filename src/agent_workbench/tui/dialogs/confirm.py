"""Dialog that asks a yes or no question."""

from collections.abc import Iterable, Sequence

from textual import events
from textual.binding import Binding
from textual.widget import Widget

from agent_workbench.core.ports.machine import Clock
from agent_workbench.tui.bars.hints import hint_line
from agent_workbench.tui.dialogs.dialog import Dialog, text_body
from agent_workbench.tui.widgets.readiness import Readiness, queued_seconds

SHOWN = "shown"


class ConfirmDialog(Dialog[bool]):
    """Returns True for yes, False for no or Esc. A yes counts only after the question was on screen for a moment.

    Enter is a yes, except where a yes takes work away or is never given in passing (`by_letter`).
    """

    BINDINGS = [
        Binding("y", "yes", "yes"),
        Binding("enter", "enter", "yes"),
        Binding("n,escape,q", "no", "no"),
    ]

    def __init__(
        self,
        title: str,
        lines: Sequence[str],
        clock: Clock,
        *,
        yes: str = "yes",
        no: str = "no",
        name: str = "confirm",
        by_letter: bool = False,
    ) -> None:
        keys = ("y", "n") if by_letter else ("Enter", "Esc")
        self._answers = hint_line(zip(keys, (yes, no), strict=True))
        super().__init__(title, self._answers, name=name)
        self._lines = lines
        self._by_letter = by_letter
        self._readiness = Readiness(clock)
        self._pressed_at: float | None = None

    def body(self) -> Iterable[Widget]:
        return (text_body(self._lines),)

    def on_mount(self) -> None:
        self.call_after_refresh(self._readiness.painted, SHOWN)

    def on_key(self, event: events.Key) -> None:
        """Remember when the key was pressed; Textual looks up bindings after this."""
        self._pressed_at = event.time

    def action_enter(self) -> None:
        if self._by_letter:
            self.remark_on("Enter is no answer here")
        else:
            self.action_yes()

    def action_yes(self) -> None:
        if self.read():
            self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)

    def read(self) -> bool:
        """Return True if the question was on screen for a moment; say so if not."""
        ready = self._readiness.ready(SHOWN, queued_seconds(self._pressed_at))
        if not ready:
            self.remark_on("too quick: read it first")
        return ready

    def remark_on(self, remark: str) -> None:
        """Show a remark before the keys."""
        self.show_keys(f"{remark}   {self._answers}")


class QuestionDialog(ConfirmDialog):
    """A question with two answers that decide something: neither is given in passing, and Esc is no answer."""

    BINDINGS = [
        Binding("n", "no", "no"),
        Binding("escape,q", "leave_open", "leave open"),
    ]

    def action_no(self) -> None:
        if self.read():
            super().action_no()

    def action_leave_open(self) -> None:
        self.remark_on("this waits for an answer")
