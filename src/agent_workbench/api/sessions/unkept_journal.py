"""Journal in memory, for a call that is answered although its session cannot be written."""

from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.ports.stores import HeldSession


class UnkeptJournal:
    """Implements `core.ports.stores.Journal`; nothing outlives it."""

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        """Return the event as recorded."""
        return Recorded(seq, time, event)

    async def close(self) -> None:
        """Do nothing."""


def unkept_session() -> HeldSession:
    """Return a new session that is not written anywhere."""
    from agent_workbench.adapters.journal.clock import SystemIds

    return HeldSession(SystemIds().session(), UnkeptJournal())
