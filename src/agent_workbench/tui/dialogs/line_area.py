"""Text area of the input line: its keys, and a bound for pasted text."""

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from agent_workbench.core.intents import MOST_SAID_CHARS


class LineArea(TextArea):
    """Text area of the input line: Enter sends, and pasted line breaks stay. `choosing`: a list is shown above."""

    choosing = False

    class Sent(Message):
        """The words are sent."""

    class Completed(Message):
        """The selected completion is taken."""

    class Moved(Message):
        """Another completion is selected."""

        def __init__(self, by: int) -> None:
            self.by = by
            super().__init__()

    class TooLong(Message):
        """A pasted text was left out."""

        def __init__(self, chars: int) -> None:
            self.chars = chars
            super().__init__()

    async def _on_key(self, event: events.Key) -> None:
        taken: Message | None = {"enter": self.Sent(), "tab": self.Completed()}.get(event.key)
        if self.choosing and event.key in {"up", "down"}:
            taken = self.Moved(1 if event.key == "down" else -1)
        if taken is None and event.key != "ctrl+j":
            return  # Textual calls the handler of the base class next
        event.stop()
        event.prevent_default()
        if taken is not None:
            self.post_message(taken)
        elif not self.read_only:
            self.insert("\n")

    async def _on_paste(self, event: events.Paste) -> None:
        if len(event.text) + len(self.text) > MOST_SAID_CHARS:
            event.stop()
            event.prevent_default()
            self.post_message(self.TooLong(len(event.text)))
