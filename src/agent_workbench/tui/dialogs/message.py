"""Dialog for a message to the model: a few lines, sent with Enter."""

from collections.abc import Iterable

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea

from agent_workbench.tui.dialogs.dialog import Dialog

LIMIT_CHARS = 4_000


class MessageArea(TextArea):
    """Text area in which Enter sends the message; pasted line breaks stay."""

    class Sent(Message):
        """The message is sent."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Sent())
        elif event.key == "ctrl+j":
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)


class MessageDialog(Dialog[str | None]):
    """Returns the message, None if there is none."""

    BINDINGS = [Binding("escape", "cancel", "cancel", priority=True)]

    def __init__(self) -> None:
        self._keys_line = "Enter sends   Ctrl-J new line   Esc discards"
        super().__init__("Message to the model, read with its next step", self._keys_line, name="say")

    def body(self) -> Iterable[Widget]:
        return (MessageArea(soft_wrap=True, show_line_numbers=False, tab_behavior="focus", compact=True),)

    def on_message_area_sent(self) -> None:
        text = self.query_one(MessageArea).text.strip()
        if len(text) > LIMIT_CHARS:
            self.show_keys(f"too long: {len(text):,} of at most {LIMIT_CHARS:,} characters   {self._keys_line}")
        else:
            self.dismiss(text or None)

    def action_cancel(self) -> None:
        self.dismiss(None)
