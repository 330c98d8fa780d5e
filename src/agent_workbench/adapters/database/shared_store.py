"""Sessions of a repository on all machines: local ones, copied and compared with their rows, and others."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress

from msgspec.structs import replace

from agent_workbench.adapters.database.copy_tools import CopyState, CopyTools, Mirror
from agent_workbench.adapters.database.journal_rows import BATCH_BYTES
from agent_workbench.adapters.database.session_copier import FIRST_PAUSE, LONGEST_PAUSE, SessionCopier
from agent_workbench.adapters.database.shared_opening import ANOTHER, LeasedJournal, SessionOpening, SessionSources
from agent_workbench.core.background import in_background
from agent_workbench.core.database_report import Backlog, summed
from agent_workbench.core.errors import DatabaseDownError, JournalError, LockedError, UsageError, WorkbenchError
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.journal_proof import Problem, VerifyReport
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.history.summaries import SessionQuery, SessionSummary, unfinished_session
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.shared_state import NO_LINE, JournalCopies, StoredLine, require_blob
from agent_workbench.core.ports.stores import ForkJournal, HeldSession, SessionStore

POLL_SECONDS = 1.0
_MOST_TRIES = 10

_ADVICE = "somebody changed the database; the journal here is as it was copied"


class SharedSessionStore:
    """`core.ports.stores.SessionStore` around the `local` one.

    A session is read here as long as this machine wrote it last, and in the mirror once another one did. Without the
    database there are the local sessions, and those of other machines as they were seen last; the latter cannot be
    opened. `removed` says which sessions the user removed from this machine.
    """

    def __init__(
        self, local: SessionStore, tools: CopyTools, mirror: Mirror, removed: Callable[[SessionId], bool]
    ) -> None:
        self._local = local
        self._tools = tools
        self._mirror = mirror
        self._sources = SessionSources(local, tools, mirror, removed)
        self._opening = SessionOpening(local, tools, mirror)
        self.rest = RestCopier(tools, self._sources.journals)
        """Copier of what ended processes of this machine left."""

    async def summaries(self) -> tuple[SessionSummary, ...]:
        """Return all sessions, newest first; of other machines the newest."""
        found = {each.id: each for each in await self._local.summaries()}
        holders: dict[SessionId, str] = {}
        try:
            heads = await self._sources.heads()
            holders = await self._tools.leases.holders([*found, *(head.session for head in heads)])
            elsewhere = await self._sources.elsewhere(heads)
            found.update({each.id: each for each in await self._sources.all_mirrored(elsewhere)})
        except DatabaseDownError:
            for each in await self._mirror.store.summaries():
                if each.events:
                    found.setdefault(each.id, replace(each, ours=True, worker=ANOTHER))
        self.rest.begin()
        held = (replace(each, holder=each.holder or holders.get(each.id, "")) for each in found.values())
        return tuple(sorted(held, key=lambda each: each.id, reverse=True))

    async def summary(self, session: SessionId) -> SessionSummary:
        """Return one session as `summaries` does."""
        try:
            head = await self._tools.rows.newest_head(session)
            holder = (await self._tools.leases.holders([session])).get(session, "")
        except DatabaseDownError:
            if await self._sources.is_here(session):
                return await self._local.summary(session)
            if not await self._mirror.knows(session):
                raise
            return replace(await self._mirror.store.summary(session), ours=True, worker=ANOTHER)
        if head is not None and await self._sources.elsewhere([head]):
            return replace(await self._sources.mirrored(head), holder=holder)
        local = await self._local.summary(session)
        return replace(local, holder=local.holder or holder)

    async def locate(self, name: str = "") -> SessionId:
        """Return the session whose first or last letters are `name`; the newest for an empty name."""
        names = set(await asyncio.to_thread(lambda: (*self._tools.copies.sessions(), *self._mirror.copies.sessions())))
        down: DatabaseDownError | None = None
        try:
            names.update(head.session for head in await self._sources.heads())
        except DatabaseDownError as error:
            down = error
        found = sorted((each for each in names if _has_name(each, name)), reverse=True)
        if not found and name and down is not None:
            raise down  # nobody can say that there is no such session
        if not found:
            return await self._local.locate(name)  # which says that there is none
        if name and len(found) > 1:
            raise UsageError(f"{len(found)} sessions begin with {name!r}", advice="one of " + ", ".join(found))
        return found[0]

    async def find(self, query: SessionQuery) -> SessionId | None:
        """Return the session that `open` would resume, None if it would begin a new one."""
        if not query.name:
            found = None if query.fresh else unfinished_session(await self.summaries(), query)
            return found.id if found is not None else None
        session = await self.locate(query.name)
        try:
            head = await self._tools.rows.newest_head(session)
        except DatabaseDownError:
            head = None
        if head is not None and await self._sources.elsewhere([head]):
            await self._tools.require_signed(head)
            return session
        if not await self._sources.is_here(session) and await self._mirror.knows(session):
            return session  # its opening says why it cannot be continued
        return await self._local.find(replace(query, name=session))

    async def open(self, query: SessionQuery) -> HeldSession:
        """Resume the session that fits the query, or begin a new one; what is written is copied from then on."""
        opening = asyncio.ensure_future(self._open_one(query))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.wait({opening})
            if opening.exception() is None:
                await self.discard(opening.result())
            raise

    async def discard(self, opened: HeldSession) -> None:
        """Close the journal of a session in which nothing was done; one that was new is removed."""
        journal = self._sources.journals.pop(opened.id, None)
        if journal is None or not opened.fresh:
            await opened.journal.close()
            return
        await journal.abandon()
        with suppress(WorkbenchError):  # what stays says nothing, and nobody continues it
            await self._tools.rows.forget(opened.id, journal.copier.fence)
        await asyncio.to_thread(self._tools.states.remove, opened.id)
        await self._local.discard(journal.held)

    def fork(self) -> tuple[SessionId, ForkJournal]:
        """Return the id and the journal of a new session; it is copied once it is opened."""
        return self._local.fork()

    async def read(self, session: SessionId, *, whole: bool = False) -> tuple[Recorded, ...]:
        """Return the events recorded so far, each proved."""
        return await (await self._sources.source(session)).read(session, whole=whole)

    async def verify(self, session: SessionId) -> VerifyReport:
        """Return every line that does not fit, here or in the database; raise `JournalError` for a forged head."""
        source = await self._sources.source(session)
        mirrored = source is self._mirror.store
        copies = self._mirror.copies if mirrored else self._tools.copies
        if mirrored:
            known = (await asyncio.to_thread(copies.end, session)).seq
        else:
            state = await asyncio.to_thread(self._tools.states.of, session)
            known = state.seq if state is not None else NO_LINE
        report = await source.verify(session)
        problems = await row_problems(self._tools, copies, session, known)
        return replace(report, problems=(*report.problems, *problems))

    async def origins(self) -> Mapping[SessionId, tuple[SessionId, int] | None]:
        """Return, for each session, its parent and the last event they share; None if it is no fork."""
        return {
            each.id: (each.parent, each.parent_seq) if each.parent is not None and each.parent_seq is not None else None
            for each in await self.summaries()
        }

    async def follow(self, session: SessionId, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        """Yield the events after `after_seq`, then each new one, whichever machine writes."""
        while True:
            source = await self._sources.source(session)
            moved = asyncio.ensure_future(self._moves_from(source, session))
            try:
                async with aclosing(source.follow(session, after_seq)) as events:
                    async for recorded in _until(events, moved):
                        after_seq = recorded.seq
                        yield recorded
            finally:
                moved.cancel()
                await asyncio.gather(moved, return_exceptions=True)
            moved.result()

    async def elsewhere(self, session: SessionId) -> bool:
        """Return True if another machine wrote a session last; without the database, as far as this one knows."""
        try:
            head = await self._tools.rows.newest_head(session)
        except DatabaseDownError:
            return not await asyncio.to_thread(self._tools.copies.is_own, session)
        return head is not None and bool(await self._sources.elsewhere([head]))

    def backlog(self) -> Backlog:
        """Return what the sessions that are open here have that was not copied."""
        return summed(each.copier.backlog for each in self._sources.journals.values() if not each.closed)

    async def close(self) -> None:
        """End what runs in the background; sessions are closed by those who opened them."""
        await self.rest.stop()

    async def _open_one(self, query: SessionQuery) -> HeldSession:
        opened = await self._resume_or_begin(query)
        if isinstance(opened.journal, LeasedJournal):
            self._sources.journals[opened.id] = opened.journal
        self.rest.begin()
        return opened

    async def _resume_or_begin(self, query: SessionQuery) -> HeldSession:
        for tries in range(_MOST_TRIES):
            session = await self.find(query)
            if session is None:
                break
            try:
                return await self._opening.resume(session)
            except LockedError:
                if query.name or tries == _MOST_TRIES - 1:
                    raise  # without a name the next look does not find it
        return await self._opening.begin(query)

    async def _moves_from(self, source: SessionStore, session: SessionId) -> None:
        """Keep the mirror up to date while it is followed; return when another store has the newest."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with suppress(DatabaseDownError):
                if await self._sources.source(session) is not source:
                    return


async def _until(events: AsyncGenerator[Recorded], end: "asyncio.Future[None]") -> AsyncGenerator[Recorded]:
    """Yield events until `end` is done."""
    coming: asyncio.Future[Recorded] | None = None
    try:
        while not end.done():
            coming = coming or asyncio.ensure_future(anext(events))
            await asyncio.wait((coming, end), return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                recorded, coming = coming.result(), None
                yield recorded
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


def _has_name(session: SessionId, wanted: str) -> bool:
    return session.startswith(wanted) or session.rpartition("-")[2].startswith(wanted)


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


async def row_problems(
    tools: CopyTools, copies: JournalCopies, session: SessionId, known: int = NO_LINE
) -> tuple[Problem, ...]:
    """Return what the database has of a session and should not have, or lacks; none if it does not answer.

    `copies` has the journal, of which the database had everything up to event `known` once.
    """
    try:
        head = await tools.rows.newest_head(session)
        if head is None:
            said = f"the database does not have the session any more, of which event {known} was copied"
            return (Problem(0, said, _ADVICE),) if known >= 0 else ()
        return tuple([each async for each in _problems(tools, copies, head, known)])
    except DatabaseDownError:
        return ()
    except JournalError as error:
        return (Problem(0, str(error), error.advice),)


async def _problems(tools: CopyTools, copies: JournalCopies, head: SignedHead, known: int) -> AsyncGenerator[Problem]:
    await tools.require_signed(head)
    if head.seq < known:
        yield Problem(0, f"the database has events up to {head.seq}, and {known} was copied", _ADVICE)
    here = _lines(copies, head.session)
    async for data in tools.rows.lines(head.session, NO_LINE, head.seq):
        line = await anext(here, None)
        if line is None or line.data != data:
            number = line.seq if line is not None else head.seq
            yield Problem(number + 1, f"the database has another line of event {number} than was copied", _ADVICE)
            return
        for name in line.blobs:
            require_blob(name, await tools.rows.blob(name))
        if line.seq == head.seq and line.hash != head.hash:
            yield Problem(head.seq + 1, f"the signed head of the database has {head.hash[:12]} for event {head.seq}")


async def _lines(copies: JournalCopies, session: SessionId) -> AsyncGenerator[StoredLine]:
    offset = 0
    while batch := await asyncio.to_thread(copies.lines, session, offset, BATCH_BYTES):
        for each in batch:
            yield each
        offset = batch[-1].end
