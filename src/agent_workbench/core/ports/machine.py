"""Ports of the machine: clock, fresh ids, desktop notifications, resources."""

from typing import Protocol

from agent_workbench.core.ids import SessionId
from agent_workbench.core.workers import MachineResources


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


class Machine(Protocol):
    """The machine under a worker. All calls block."""

    def resources(self) -> MachineResources:
        """Return its resources now, with the GPUs that were found last; takes a moment."""

    def find_gpus(self) -> None:
        """Look for GPUs; takes some seconds at most, whatever their driver does."""
