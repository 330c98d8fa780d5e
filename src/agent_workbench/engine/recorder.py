"""Recorder of events: each is appended to the journal, folded into the state, and published."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.stores import Journal
from agent_workbench.core.state.session_state import SessionState


class Overtaken(Exception):
    """Another event was recorded after the one that the new event is based on."""


class Record(Protocol):
    """Type of `Recorder.record`."""

    async def __call__(self, event: Event, *, after: int | None = None) -> Recorded:
        """Append `event` durably and fold it into the state."""


class Recorder:
    """The state of a session, and the only way to change it. Gives each event its number and time.

    `publish` gets each new state, once its event is durable; then `listeners` get the event as the journal has it.
    """

    def __init__(
        self, journal: Journal, clock: Clock, state: SessionState, publish: Callable[[SessionState], object]
    ) -> None:
        self.listeners: list[Callable[[Recorded], None]] = []
        self._journal = journal
        self._clock = clock
        self._state = state
        self._publish = publish
        self._turn = asyncio.Lock()

    @property
    def state(self) -> SessionState:
        """The state after the last event."""
        return self._state

    async def record(self, event: Event, *, after: int | None = None) -> Recorded:
        """Append `event` durably and fold it into the state; raise `StorageError` with the state unchanged.

        If `after` is given and is not the number of the last event, `Overtaken` is raised and nothing is recorded.
        """
        async with self._turn:
            if after is not None and self._state.seq != after:
                raise Overtaken
            write = asyncio.ensure_future(self._journal.append(self._state.seq + 1, self._clock.now(), event))
            try:
                recorded = await asyncio.shield(write)
            except asyncio.CancelledError:
                # The line may be on the disk already, so the state must include it, whoever cancels.
                while not write.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait({write})
                self._take(write.result())
                raise
            self._take(recorded)
            return recorded

    def _take(self, recorded: Recorded) -> None:
        self._state = fold(self._state, recorded)
        self._publish(self._state)
        for listener in self.listeners:
            listener(recorded)

    async def close(self) -> None:
        """Close the journal when the last append has ended."""
        async with self._turn:
            await self._journal.close()
