"""The only way an event comes to be: appended to the journal, folded into the state, published."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.ports.services import Clock, Journal
from agent_workbench.core.state.session_state import SessionState


class Overtaken(Exception):
    """Something was recorded meanwhile that what was to be recorded does not know of."""


OnRecorded = Callable[[Recorded, SessionState], None]


class Recorder:
    """Holds the state; gives each event its number and time."""

    def __init__(self, journal: Journal, clock: Clock, state: SessionState, on_recorded: OnRecorded) -> None:
        self._journal = journal
        self._clock = clock
        self._state = state
        self._on_recorded = on_recorded
        self._turn = asyncio.Lock()

    @property
    def state(self) -> SessionState:
        """The state after the last event."""
        return self._state

    async def record(self, event: Event, *, after: int | None = None) -> Recorded:
        """Make `event` durable and part of the state; raise `StorageError` with the state as it was.

        Where `after` names the number of the event that has to be the last one so far and another came behind it,
        `Overtaken` is raised and nothing is recorded.
        """
        async with self._turn:
            if after is not None and self._state.seq != after:
                raise Overtaken
            write = asyncio.ensure_future(self._journal.append(self._state.seq + 1, self._clock.now(), event))
            try:
                recorded = await asyncio.shield(write)
            except asyncio.CancelledError:
                # The line is on its way to the disk: the state must not fall behind it, however often one asks to stop.
                while not write.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait({write})
                self._take(write.result())
                raise
            self._take(recorded)
            return recorded

    def _take(self, recorded: Recorded) -> None:
        self._state = fold(self._state, recorded)
        self._on_recorded(recorded, self._state)

    async def close(self) -> None:
        """Close the journal after what is being written."""
        async with self._turn:
            await self._journal.close()
