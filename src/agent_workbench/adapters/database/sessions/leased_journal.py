"""Journal of a session that is copied: the local one, under a lease."""

import asyncio

from agent_workbench.adapters.database.sessions.copier import SessionCopier
from agent_workbench.core.events import ActionStarted, Event, Recorded
from agent_workbench.core.ports.stores import HeldSession


class LeasedJournal:
    """`core.ports.stores.Journal`: an event is durable in the local journal first, then copied in the background.

    The start of an action waits for its copy while the database answers: no other machine then takes the action for
    one that was not begun.
    """

    def __init__(self, held: HeldSession, copier: SessionCopier) -> None:
        self.held = held
        """The session of the local store."""
        self.copier = copier
        self.closed = False

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        """Write the event durably here; raise `LockedError` if another machine took the session over."""
        await self.copier.require_lease()
        recorded = await self.held.journal.append(seq, time, event)
        self.copier.tell(recorded.seq)
        if isinstance(event, ActionStarted):
            await self.copier.copied(recorded.seq)
        return recorded

    async def close(self) -> None:
        """Copy what is left while the database answers, and give lease and lock back."""
        self.closed = True
        try:
            await asyncio.shield(asyncio.ensure_future(self.copier.finish()))
        finally:
            await self.held.journal.close()

    async def abandon(self) -> None:
        """Close the journal without copying more."""
        self.closed = True
        await self.copier.stop()
        await self.held.journal.close()
