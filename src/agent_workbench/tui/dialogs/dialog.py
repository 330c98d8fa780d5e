"""Base of all dialogs: a frame with a title and a line of key hints."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.terminal.selectable_screen import SelectableScreen
from agent_workbench.views.sessions.read_only import read_only_reason

Answer = TypeVar("Answer")


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
