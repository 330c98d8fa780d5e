"""Costs of the tasks of sessions. A journal is read again only after it has grown."""

import asyncio
from collections.abc import Iterable

from agent_workbench.core.dispatch.progress import TaskCost
from agent_workbench.core.errors import JournalError, StorageError, UsageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.stores import SessionStore

SECONDS_A_MINUTE = 60.0


class SessionCosts:
    """Costs of the newest task of each session."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._known: dict[SessionId, tuple[int, TaskCost | None]] = {}

    async def of(self, sessions: Iterable[SessionId]) -> dict[SessionId, TaskCost]:
        """Return the cost for each session that is known here and has begun its task."""
        found = {}
        for session in sessions:
            try:
                events = (await self._store.summary(session)).events
                if self._known.get(session, (-1, None))[0] != events:
                    self._known[session] = (events, await self._cost(session))
            except (JournalError, StorageError, UsageError):
                continue  # it is on another machine, or damaged: then nothing is known of its cost
            if (cost := self._known[session][1]) is not None:
                found[session] = cost
        return found

    async def _cost(self, session: SessionId) -> TaskCost | None:
        from agent_workbench.core.fold import fold_all

        events = await self._store.read(session)
        run = (await asyncio.to_thread(fold_all, events)).run
        if run is None:
            return None
        return TaskCost(run.step, run.tokens, round(run.working_seconds / SECONDS_A_MINUTE, 3), run.dollars)
