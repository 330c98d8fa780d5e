"""Splash screen: the first frame, shown while session and panes are loaded."""

from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static


class SplashScreen(Screen[None]):
    """Splash screen; posts `Shown` when it is visible. It needs no session, so it appears at once."""

    class Shown(Message):
        """The first frame was sent to the terminal."""

    def compose(self) -> ComposeResult:
        yield Static(" Agent Workbench  opening …", id="opening-bar", markup=False)
        yield Static("", id="opening-status", markup=False)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.post_message, self.Shown())
