"""Copier of what processes of this machine left when they ended: the lines of sessions that nobody has open."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

from agent_workbench.adapters.database.sessions.copier import FIRST_PAUSE, LONGEST_PAUSE, SessionCopier
from agent_workbench.adapters.database.sessions.copy_states import CopyState
from agent_workbench.adapters.database.sessions.copy_tools import CopyTools
from agent_workbench.adapters.database.sessions.leased_journal import LeasedJournal
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import LockedError, WorkbenchError
from agent_workbench.core.ids import SessionId


class RestCopier:
    """Copies the rest of all sessions but the `journals` that are open in this process, in the background."""

    def __init__(self, tools: CopyTools, journals: Mapping[SessionId, LeasedJournal]) -> None:
        self._tools = tools
        self._journals = journals
        self._working: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look for a rest, and copy it until nothing is left; one look at a time."""
        if self._working is None or self._working.done():
            self._working = in_background(self._work())

    async def stop(self) -> None:
        """End without copying more."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    async def copy_once(self) -> None:
        """Try once to copy what is left."""
        await self._copy(await self._left())

    async def _work(self) -> None:
        pause = FIRST_PAUSE
        while left := await self._left():
            await self._copy(left)
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    async def _left(self) -> tuple[SessionId, ...]:
        behind = await asyncio.to_thread(self._tools.states.behind, self._tools.copies)
        return tuple(each for each in behind if each not in self._journals or self._journals[each].closed)

    async def _copy(self, sessions: Iterable[SessionId]) -> None:
        for session in sessions:
            with suppress(WorkbenchError):  # it is open again, or damaged: who opens it is told
                await _copy_one(self._tools, session)


async def _copy_one(tools: CopyTools, session: SessionId) -> None:
    """Copy what a process that ended left of a session of this machine; raise `LockedError` if it is open again."""
    release = await asyncio.to_thread(tools.copies.lock, session)
    try:
        state = await asyncio.to_thread(tools.states.of, session) or CopyState()
        end = await asyncio.to_thread(tools.copies.end, session)
        copier = SessionCopier(session, tools, state, None)
        copier.tell(end.seq)
        copier.start()
        with suppress(LockedError):  # noted in its state
            await copier.copied(end.seq)
        await copier.finish()
    finally:
        release()
