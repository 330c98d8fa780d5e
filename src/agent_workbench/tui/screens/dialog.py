"""Base of all dialogs with title and key hints, and those for a yes or no, a reason, and a text."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from agent_workbench.core.ids import ProposalId
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.row_list import Readiness, SelectableScreen, queued_seconds
from agent_workbench.views.sessions import read_only_reason

Answer = TypeVar("Answer")

SHOWN = "shown"

SAVE_KEYS = (("Ctrl-S", "save"), ("Esc", "discard"))


class Dialog(ModalScreen[Answer], SelectableScreen[Answer]):
    """A frame around a body. Texts are shown as they are, never as markup."""

    def __init__(self, title: str, keys: str, *, name: str) -> None:
        super().__init__(name=name, classes=name)
        self._heading = sanitize_line(title, 200)
        self._keys = keys

    def compose(self) -> ComposeResult:
        frame = Vertical(*self.body(), Static(self._keys, classes="keys", markup=False), classes="frame")
        frame.border_title = Content(self._heading)
        yield frame

    def body(self) -> Iterable[Widget]:
        """Return the widgets in the frame."""
        raise NotImplementedError

    def show_keys(self, text: str) -> None:
        """Replace the line of key hints."""
        self.query_one(".keys", Static).update(text)


def text_body(lines: Sequence[str]) -> VerticalScroll:
    """Return lines as a body that scrolls if there are many."""
    text = sanitize("\n".join(lines), limit_chars=50_000)
    return VerticalScroll(Static(text, markup=False), classes="text", can_focus=True)


def prompt_lock_reason(update: SessionUpdate) -> str:
    """Return the reason why the prompt cannot be changed now, empty if it can."""
    if reason := read_only_reason(update.live):
        return reason
    return "" if update.state.unfinished else "the task is over; nothing can be changed any more"


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
