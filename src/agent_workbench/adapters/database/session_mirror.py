"""Sessions of other machines: journals in a folder of this machine's state, proved before they are used."""

import asyncio

from agent_workbench.adapters.database.copy_tools import CopyTools
from agent_workbench.core.errors import JournalError
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.journal_copies import IncomingLines, JournalCopies
from agent_workbench.core.ports.stores import SessionStore


class Mirror:
    """Journals of other machines in the folder of `copies`, which `store` reads. They only grow.

    A line is kept only if a signed head stands for it. So whatever is in the folder was vouched for once, and a
    database that has less than that, or something else, was changed.
    """

    def __init__(self, tools: CopyTools, copies: JournalCopies, store: SessionStore) -> None:
        self._tools = tools
        self.copies = copies
        self.store = store

    async def bring(self, session: SessionId, head: SignedHead | None = None, *, whole: bool = True) -> SignedHead:
        """Bring the journal of a session up to the newest head, or to `head`, and return it; `whole`: with its blobs.

        Raises `JournalError` for a head without a signature that counts, for lines that do not lead to it, and for
        ones that lead elsewhere than what was seen here before. `StorageError` without the database.
        """
        found = head or await self._tools.rows.newest_head(session)
        if found is None:
            raise self._gone(session)
        await self._extend(found)
        if whole:
            await self._bring_blobs(session)
        return found

    async def knows(self, session: SessionId) -> bool:
        """Return True if this machine has seen the session."""
        return await asyncio.to_thread(self.copies.size, session) > 0

    async def _extend(self, head: SignedHead) -> None:
        end = await asyncio.to_thread(self.copies.end, head.session)
        if (end.seq, end.hash) == (head.seq, head.hash) and end.seq >= 0:
            return
        await self._tools.require_signed(head)
        incoming = await asyncio.to_thread(self.copies.receive, head.session)
        try:
            await self._receive(incoming, head)
            await asyncio.to_thread(incoming.keep)
        finally:
            await asyncio.to_thread(incoming.drop)

    async def _receive(self, incoming: IncomingLines, head: SignedHead) -> None:
        end, found = incoming.end, incoming.end.hash
        if head.seq < end.seq or (head.seq == end.seq and head.hash != end.hash):
            raise JournalError(
                f"the database has session {head.session} up to event {head.seq} ({head.hash[:12]}); this machine has "
                f"seen event {end.seq} ({end.hash[:12]}) of it",
                advice="the database was changed or restored; a machine that has the whole journal can copy it again",
            )
        try:
            async for line in self._tools.rows.lines(head.session, end.seq, head.seq):
                found = await asyncio.to_thread(incoming.add, line)
            if found != head.hash:
                raise JournalError(f"event {head.seq} has {found[:12]}, {head.hash[:12]} was signed")
        except JournalError as error:
            raise JournalError(
                f"the database's lines of session {head.session} do not lead to its signed head, event {head.seq}: "
                f"{error}",
                advice="they were changed or cut; nothing of them was taken",
            ) from error

    async def _bring_blobs(self, session: SessionId) -> None:
        for name in await asyncio.to_thread(self.copies.lacking, session):
            data = await self._tools.rows.blob(name)
            await asyncio.to_thread(self.copies.put_blob, session, name, data)

    def _gone(self, session: SessionId) -> JournalError:
        if not self.copies.size(session):
            return JournalError(f"there is no session {session}", advice="`agent sessions list` shows what there is")
        return JournalError(
            f"the database no longer has session {session}, which this machine has seen",
            advice="it was removed there; a machine that has the journal can copy it again",
        )
