"""What copies of journals are made and judged with: the database, the local journals, signatures and git refs."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from agent_workbench.adapters.database.copy_states import CopyStates
from agent_workbench.adapters.database.journal_rows import JournalRows
from agent_workbench.adapters.database.session_leases import Leases
from agent_workbench.core.errors import JournalError
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.journal_copies import JournalCopies, StoredLine
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.shared_state import SessionRefs, Signatures
from agent_workbench.core.signed import SignedPurpose


class CopyTools:
    """What every copier of a store needs. `refs` is None where no git remote is shared."""

    def __init__(
        self,
        rows: JournalRows,
        leases: Leases,
        copies: JournalCopies,
        states: CopyStates,
        signatures: Signatures,
        refs: SessionRefs | None,
        clock: Clock,
        worker: str,
    ) -> None:
        self.rows = rows
        self.leases = leases
        self.copies = copies
        self.states = states
        self.signatures = signatures
        self.refs = refs
        self.clock = clock
        self.worker = worker

    async def signed(self, session: SessionId, seq: int, digest: str, fence: int) -> SignedHead:
        """Return a signed head; raise `SigningError`."""
        head = SignedHead(session, seq, digest, fence, self.worker)
        return replace(head, signature=await self.signatures.sign(SignedPurpose.JOURNAL, head.message))

    async def require_signed(self, head: SignedHead) -> SignedHead:
        """Return a head of the database whose signature counts; raise `JournalError` for any other."""
        problem = await self.signatures.problem(SignedPurpose.JOURNAL, head.message, head.signature)
        if not problem:
            return head
        raise JournalError(
            f"the newest head of session {head.session} in the database (event {head.seq}, lease {head.fence}) "
            f"does not count: {problem}",
            advice="its lines may be forged; if you know who wrote them, add their key to the allowed signers",
        )

    async def newest_head(self, session: SessionId) -> SignedHead | None:
        """Return the newest head, None if there is none; raise `JournalError` if its signature does not count."""
        head = await self.rows.newest_head(session)
        return await self.require_signed(head) if head is not None else None

    async def position(self, head: SignedHead | None) -> StoredLine | None:
        """Return the line of this machine's journal at a head; None if another machine went on from there.

        Before the first event it is a line without a number.
        """
        if head is None or head.seq < 0:
            return StoredLine(-1, "", "", b"")
        return await asyncio.to_thread(self.find_position, head)

    def find_position(self, head: SignedHead) -> StoredLine | None:
        """Return the line of this machine's journal at a head, None if it has none. Blocks."""
        line = self.copies.line(head.session, head.seq)
        return line if line is not None and line.hash == head.hash else None

    async def copy_blobs(self, session: SessionId, lines: Sequence[StoredLine]) -> None:
        """Copy the blobs of these lines that the database does not have."""
        for name in await self.rows.missing_blobs([name for each in lines for name in each.blobs]):
            data = await asyncio.to_thread(self.copies.blob, session, name)
            await self.rows.put_blob(name, data)
