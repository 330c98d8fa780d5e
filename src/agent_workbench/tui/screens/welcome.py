"""The first screen a user ever sees: what the panes are, what the gate is, which keys matter."""

from collections.abc import Iterable

from textual import events
from textual.widget import Widget

from agent_workbench.tui.keymap import Keymap
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialogue import Dialogue, text_body


class WelcomeScreen(Dialogue[None]):
    """Any key closes it."""

    def __init__(self, keymap: Keymap) -> None:
        super().__init__("Agent Workbench", "any key goes on", id="welcome")
        self._lines = _lines(keymap)

    def body(self) -> Iterable[Widget]:
        return (text_body(self._lines),)

    def say_scripted(self) -> None:
        """Say that this is the demo."""
        self.show_keys("Demo: answers are scripted, the rest is real.   any key goes on")

    def on_key(self, event: events.Key) -> None:
        """Close, and let the key do nothing else."""
        event.stop()
        event.prevent_default()
        self.dismiss(None)

    def on_click(self) -> None:
        self.dismiss(None)


def _lines(keymap: Keymap) -> tuple[str, ...]:
    def key(action: str, scope: Scope = Scope.GATE) -> str:
        return keymap.first(scope, action)

    everywhere = Scope.EVERYWHERE
    said = f"{key('tell', everywhere)} says a word to the model, {key('context', everywhere)} shows what it was given"
    return (
        "A language model on your own machine works on your plan's tasks,",
        "in a copy of your repository: your files and your branch stay as",
        "they are until you merge.",
        "",
        "Panes   1 Plan         what is to be done; Enter starts a task",
        "        2 Steps        what the model thinks, does and is told",
        "        3 Diff         what waits for you, in full",
        "        4 Scratchpad   notes, yours and the model's",
        "        5 Code         what the model was given to read",
        "",
        "Gate    Every diff, test run and commit waits in the bar below.",
        f"        {key('approve')} approve   {key('reject')} reject with a reason   {key('edit')} edit first",
        "        Only what was on screen can be approved, and only in the bar.",
        f"        {said}",
        "",
        f"Keys    {key('help', everywhere)} all of them   {key('zoom', everywhere)} zoom   Tab next pane"
        f"   {key('focus_bar', everywhere)} the bar   {key('leave', everywhere)} leave",
    )
