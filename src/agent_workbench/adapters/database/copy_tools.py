"""Copies of journals: what they are made and judged with, how far each came, and those of other machines."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.database.journal_rows import JournalRows, Leases
from agent_workbench.core.database_report import Backlog, summed
from agent_workbench.core.errors import JournalError, StorageError
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import SESSION_ID, SessionId, session_id
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.shared_state import (
    NO_LINE,
    IncomingLines,
    JournalCopies,
    SessionRefs,
    Signatures,
    StoredLine,
)
from agent_workbench.core.ports.stores import SessionStore
from agent_workbench.core.signed import SignedPurpose
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import read_regular

_MAX_BYTES = 100_000
_BATCH_BYTES = 10_000_000


class CopyState(Struct, frozen=True):
    """The newest copied event of a session: number, hash and the offset behind its line.

    `fence` is the newest lease of this machine, `cause` why the next events could not be copied. `fenced`: another
    machine continued from here, so what follows in the journal of this one is never copied. `arrived` is the newest
    event of another machine, and `away_since` the last one that this machine knew before, while nothing follows here.
    """

    fence: int = 0
    seq: int = NO_LINE
    hash: str = ""
    offset: int = 0
    cause: str = ""
    fenced: bool = False
    arrived: int = NO_LINE
    away_since: int | None = None

    @property
    def arriving(self) -> bool:
        """True while the lines of another machine are here, and its git objects may not be."""
        return self.arrived > self.seq


class CopyStates:
    """A file for each session in `folder`. Blocking."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, session: SessionId) -> CopyState | None:
        """Return the state of a session, None if it was never opened to be copied."""
        try:
            return msgspec.json.decode(read_regular(self._path(session), _MAX_BYTES), type=CopyState)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(f"{self._path(session)} could not be read", error) from error
        except msgspec.MsgspecError:
            return None  # it says less than the database and the journal; both are asked then

    def put(self, session: SessionId, state: CopyState) -> None:
        """Write the state of a session durably; raise `StorageError`."""
        try:
            make_directories(self._folder)
        except OSError as error:
            raise storage_error(f"{self._folder} cannot be created", error) from error
        write_atomically(self._path(session), msgspec.json.encode(state), mode=0o600)

    def remove(self, session: SessionId) -> None:
        """Remove the state of a session in which nothing was done."""
        check_record(self._path(session))
        self._path(session).unlink(missing_ok=True)

    def sessions(self) -> tuple[SessionId, ...]:
        """Return the sessions that have a state, oldest first."""
        try:
            names = sorted(each.name for each in self._folder.iterdir())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StorageError(f"{self._folder} could not be read: {error.strerror}") from error
        return tuple(SessionId(each) for each in names if SESSION_ID.fullmatch(each))

    def behind(self, copies: JournalCopies) -> tuple[SessionId, ...]:
        """Return the sessions with lines that were not copied and still can be."""
        found = []
        for session in self.sessions():
            state = self.of(session) or CopyState()
            if (
                not state.fenced
                and not state.arriving
                and copies.is_own(session)
                and copies.size(session) > state.offset
            ):
                found.append(session)
        return tuple(found)

    def backlog(self, copies: JournalCopies) -> Backlog:
        """Return what was not copied of all sessions."""
        return summed(self._backlog(session, copies) for session in self.behind(copies))

    def _backlog(self, session: SessionId, copies: JournalCopies) -> Backlog:
        state = self.of(session) or CopyState()
        try:
            lines = copies.lines(session, state.offset, _BATCH_BYTES)
        except JournalError as error:
            return Backlog(1, 0.0, str(error))
        return Backlog(len(lines), age_seconds(lines[0].data) if lines else 0.0, state.cause)

    def _path(self, session: SessionId) -> Path:
        return self._folder / session_id(session)


def age_seconds(line: bytes) -> float:
    """Return the seconds since a line was written, 0 for one that does not say."""
    _, _, rest = line[:200].partition(b'"time":"')
    try:
        at = datetime.fromisoformat(rest[: rest.index(b'"')].decode())
        return max(0.0, (datetime.now(UTC) - at).total_seconds())
    except (ValueError, TypeError):
        return 0.0


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
