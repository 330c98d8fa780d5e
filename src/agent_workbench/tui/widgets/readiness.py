"""Minimum time on screen before a decision counts."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_workbench.core.ports.machine import Clock


MOMENT_SECONDS = 0.3


class Readiness:
    """Remembers since when a decision is on screen. A key that waited in a queue counts from when it was pressed."""

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock
        self._key = ""
        self._since = 0.0

    def painted(self, key: str) -> None:
        """Note that `key` is on screen; only its first time counts."""
        if key != self._key:
            self._key, self._since = key, self._clock.monotonic_seconds()

    def begin_again(self) -> None:
        """Start the time anew, because another part is on screen now."""
        self._since = self._clock.monotonic_seconds()

    def ready(self, key: str, queued_seconds: float = 0.0) -> bool:
        """Return True if a decision about `key` counts; it was made `queued_seconds` ago."""
        return key == self._key and self._clock.monotonic_seconds() - queued_seconds - self._since >= MOMENT_SECONDS


def queued_seconds(pressed_at: float | None) -> float:
    """Return how long an input event waited, 0 for none; Textual stamps events with the process's monotonic time."""
    return 0.0 if pressed_at is None else max(0.0, time.monotonic() - pressed_at)
