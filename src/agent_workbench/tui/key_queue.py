"""Key queue: keys that arrive together are handled one after the other."""

from collections import deque
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TypeVar

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.message import Message
from textual.widget import Widget

Result = TypeVar("Result")
ROUNDS = 3
"""Rounds of a marker through the message queues after a key: for its action, for what that posts, for a new screen."""
LOOK_SECONDS = 0.02
"""Interval of checks whether the widget with the marker in its queue was removed."""
MOST_LOOKS = 50
"""Number of such checks before the next key is handled anyway, so that a hanging widget cannot keep the user here."""


class KeyQueueApp(App[Result]):
    """App that handles a key or paste only after the previous key took effect, and none while it `holds_keys`.

    Textual sends fast keys to the widget that has the focus when they are read. After a quick `:add`, the `a` would
    approve a proposal, because the input that `:` opens is not focused yet.
    """

    @dataclass
    class Followed(Message):
        """Marker that follows a key through the message queues up to the app; `rounds` are left."""

        rounds: int

    @dataclass
    class Look(Message):
        """Time to check whether the marker of a key is still under way."""

        key: events.Event
        looks: int

    def __init__(self, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class)
        self.holds_keys = False
        """True while keys are kept until `release_keys`, with their times; clicks have nothing to hit then."""
        self._ahead: deque[events.Key | events.Paste] = deque()
        self._given: events.Event | None = None
        self._awaited: KeyQueueApp.Followed | None = None
        self._way: Widget | None = None
        self._read_seconds = -inf

    def idle_seconds(self) -> float:
        """Return the time since the last key or paste was read, infinite before the first one."""
        return monotonic() - self._read_seconds

    async def on_event(self, event: events.Event) -> None:
        if event is self._given:  # no widget handled it
            await super().on_event(event)
            if event is self._given:
                self._follow(ROUNDS - 1)
        elif not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            if not self.holds_keys or not isinstance(event, events.InputEvent):
                await super().on_event(event)
        elif self.holds_keys or self._awaited is not None:
            self._read_seconds = monotonic()
            self._ahead.append(event)
        else:
            self._read_seconds = monotonic()
            self._given = event
            way = self.focused or self.screen
            await super().on_event(event)
            self._follow(ROUNDS, way)
            self._look_soon(event)

    async def release_keys(self) -> None:
        """Handle the keys that were kept, and all that follow."""
        self.holds_keys = False
        await self._go_on()

    def _follow(self, rounds: int, way: Widget | None = None) -> None:
        """Send the marker after the key, or after the messages that it led to."""
        self._awaited = followed = self.Followed(rounds)
        self._way = way or self.focused or self.screen
        self._way.post_message(followed)

    def _look_soon(self, key: events.Event, looks: int = MOST_LOOKS) -> None:
        self.set_timer(LOOK_SECONDS, lambda: self.post_message(self.Look(key, looks)))

    async def on_key_queue_app_followed(self, message: Followed) -> None:
        if message is not self._awaited or not self.screen_stack:  # the app may be ending
            return
        if message.rounds:
            self._follow(message.rounds - 1)
        else:
            await self._go_on()

    async def on_key_queue_app_look(self, message: Look) -> None:
        if message.key is not self._given or self._awaited is None or not self.screen_stack:
            return
        if not message.looks:
            await self._go_on()
            return
        if self._way is None or not self._way.is_attached:
            self._follow(self._awaited.rounds)
        self._look_soon(message.key, message.looks - 1)

    async def _go_on(self) -> None:
        self._given = self._awaited = self._way = None
        if self._ahead:
            await self.on_event(self._ahead.popleft())
