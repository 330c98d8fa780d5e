"""Ports of the machine: clock, fresh ids, desktop notifications."""

from typing import Protocol

from agent_workbench.core.ids import SessionId


class Clock(Protocol):
    """Time, injected so that tests and replays control it."""

    def now(self) -> str:
        """Return UTC time in ISO 8601 with microseconds and `Z`."""

    def monotonic_seconds(self) -> float:
        """Return seconds that never decrease."""


class Ids(Protocol):
    """Source of new ids."""

    def session(self) -> SessionId:
        """Return an unused session id."""


class Desktop(Protocol):
    """Desktop of the terminal, if there is one."""

    async def notify(self, title: str, text: str) -> None:
        """Show a desktop notification; without a desktop nothing happens."""
