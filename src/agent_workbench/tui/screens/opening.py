"""First frame, shown while the panes are being loaded."""

from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static


class OpeningScreen(Screen[None]):
    """Posts `Shown` when it is on screen. It needs nothing of a session, so that it is there at once."""

    class Shown(Message):
        """The first frame was sent to the terminal."""

    def compose(self) -> ComposeResult:
        yield Static(" Agent Workbench  opening …", id="opening-bar", markup=False)
        yield Static("", id="opening-status", markup=False)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.post_message, self.Shown())
