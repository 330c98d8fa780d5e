"""Where the newest of a session is: in a local journal, or in the mirror of another machine's."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from agent_workbench.adapters.database.copy_tools import CopyTools
from agent_workbench.adapters.database.session_mirror import Mirror
from agent_workbench.adapters.database.shared_opening import LeasedJournal
from agent_workbench.core.errors import DatabaseDownError, JournalError
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.stores import SessionStore

_AT_ONCE = 6
"""Connections are shared with everything else of the process."""
ANOTHER = "another machine"
"""Name of a writer that is not known."""


class SessionSources:
    """Chooses between the `local` store and the mirror.

    A session is local as long as this machine wrote it last. `removed` says which ones the user removed from this
    machine, `journals` are those that are open in this process.
    """

    def __init__(
        self, local: SessionStore, tools: CopyTools, mirror: Mirror, removed: Callable[[SessionId], bool]
    ) -> None:
        self._local = local
        self._tools = tools
        self._mirror = mirror
        self._removed = removed
        self._summaries: dict[SessionId, tuple[SignedHead, SessionSummary]] = {}
        self.journals: dict[SessionId, LeasedJournal] = {}

    async def heads(self) -> Sequence[SignedHead]:
        """Return the newest heads of all sessions that have an event; no signature was looked at."""
        heads = await self._tools.rows.newest_heads()
        return await asyncio.to_thread(lambda: [head for head in heads if head.seq >= 0 and not self._is_removed(head)])

    def _is_removed(self, head: SignedHead) -> bool:
        return self._removed(head.session) and not self._tools.copies.size(head.session)

    async def is_here(self, session: SessionId) -> bool:
        """Return True if the session has a journal in the local folder."""
        return await asyncio.to_thread(self._tools.copies.size, session) > 0

    async def elsewhere(self, heads: Iterable[SignedHead]) -> tuple[SignedHead, ...]:
        """Return those of the newest heads whose sessions another machine wrote last."""
        return await asyncio.to_thread(lambda: tuple(head for head in heads if self._is_elsewhere(head)))

    def _is_elsewhere(self, head: SignedHead) -> bool:
        journal = self.journals.get(head.session)
        if journal is not None and not journal.closed:
            return journal.copier.lost is not None
        if not self._tools.copies.is_own(head.session):
            return True
        state = self._tools.states.of(head.session)
        return head.fence > state.fence if state is not None else self._tools.find_position(head) is None

    async def source(self, session: SessionId) -> SessionStore:
        """Return the store that has the newest of a session; one of another machine is brought up to date first."""
        try:
            head = await self._tools.rows.newest_head(session)
        except DatabaseDownError:
            if await self.is_here(session):
                return self._local
            if await self._mirror.knows(session):
                return self._mirror.store
            raise  # nobody can say that there is no such session
        if head is None:
            if await self.is_here(session) or not await self._mirror.knows(session):
                return self._local
        elif not await self.elsewhere([head]):
            return self._local
        await self._mirror.bring(session, head)
        return self._mirror.store

    async def all_mirrored(self, heads: Sequence[SignedHead]) -> Sequence[SessionSummary]:
        """Return the summaries of sessions of other machines; a few are brought here at the same time."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(head: SignedHead) -> SessionSummary:
            async with turns:
                return await self.mirrored(head)

        return await asyncio.gather(*map(one, heads))

    async def mirrored(self, head: SignedHead) -> SessionSummary:
        """Return the summary of a session of another machine; its `problem` says why it does not count."""
        known = self._summaries.get(head.session)
        if known is not None and known[0] == head:
            return known[1]
        try:
            await self._mirror.bring(head.session, head, whole=False)
        except JournalError as error:
            return SessionSummary(head.session, problem=str(error), worker=ANOTHER)
        found = await self._mirror.store.summary(head.session)
        summary = replace(found, ours=True, worker=head.worker or ANOTHER)
        self._summaries[head.session] = (head, summary)
        return summary
