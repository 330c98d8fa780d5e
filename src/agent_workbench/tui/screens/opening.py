"""The first frame: the line of the bar where it will stand, while all that fills the panes is still being loaded."""

from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static


class OpeningScreen(Screen[None]):
    """Says once that it is on screen. It shows and knows nothing of a session, so that it is there at once."""

    class Shown(Message):
        """The first frame was handed to the terminal."""

    def compose(self) -> ComposeResult:
        yield Static(" Agent Workbench  opening …", id="opening-bar", markup=False)
        yield Static("", id="opening-status", markup=False)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.post_message, self.Shown())
