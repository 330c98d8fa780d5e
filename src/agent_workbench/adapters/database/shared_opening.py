"""Opening of shared sessions: where the newest of one is, what other machines added, its lease and its copier."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from agent_workbench.adapters.database.copy_tools import CopyState, CopyTools, Mirror
from agent_workbench.adapters.database.session_copier import SessionCopier
from agent_workbench.core.errors import ConfigError, DatabaseDownError, JournalError, StorageError, WorkbenchError
from agent_workbench.core.events import ActionStarted, Event, Recorded
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.history.summaries import SessionQuery, SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.shared_state import NO_LINE, StoredLine
from agent_workbench.core.ports.stores import HeldSession, SessionStore

_AT_ONCE = 6
"""Connections are shared with everything else of the process."""
ANOTHER = "another machine"
"""Name of a writer that is not known."""


class SessionOpening:
    """Opens sessions of the `local` store, and those of other machines once they are continued here."""

    def __init__(self, local: SessionStore, tools: CopyTools, mirror: Mirror) -> None:
        self._local = local
        self._tools = tools
        self._mirror = mirror

    async def begin(self, query: SessionQuery) -> HeldSession:
        """Begin a new session; without the database it gets its lease later."""
        held = await self._local.open(replace(query, name="", fresh=True))
        try:
            return await self._leased(held, CopyState())
        except BaseException:
            await self._local.discard(held)
            raise

    async def resume(self, session: SessionId) -> HeldSession:
        """Resume a session, with what another machine added to it since; raise what `SessionStore.open` raises."""
        own = await asyncio.to_thread(self._tools.copies.is_own, session)
        held = await self._local.open(SessionQuery(session)) if own else None
        try:
            return await self._resume(session, held)
        except BaseException:
            if held is not None:
                await held.journal.close()
            raise

    async def _resume(self, session: SessionId, held: HeldSession | None) -> HeldSession:
        tools = self._tools
        try:
            fence = await tools.leases.claim(session)
        except DatabaseDownError:
            if held is None:
                raise
            state = await asyncio.to_thread(tools.states.of, session)
            if state is not None and state.fenced:
                raise
            return await self._copied(held, state or CopyState(), None)
        try:
            head = await tools.newest_head(session)
            at = await tools.position(head) if held is not None else None
            if held is not None and at is not None:
                known = await asyncio.to_thread(tools.states.of, session) or CopyState()
                if known.arriving:  # a takeover that did not come to its end
                    return await self._arrived(held, at, fence, known.away_since)
                await self._check_seen(session, held)
                return await self._leased(held, _at(known, at, fence))
            if held is not None:
                await held.journal.close()
            return await self._take_over(session, fence, head)
        except BaseException:
            with suppress(WorkbenchError):
                await tools.leases.release(session, fence)
            raise

    async def _take_over(self, session: SessionId, fence: int, head: SignedHead | None) -> HeldSession:
        """Continue what another machine wrote: as a whole journal of this one, with its git objects."""
        tools = self._tools
        newest = await self._mirror.bring(session, head)
        away = await asyncio.to_thread(self._make_local, session, newest.seq)
        held = await self._local.open(SessionQuery(session))
        try:
            if held.torn_bytes or (held.events[-1].seq, held.events[-1].hash) != (newest.seq, newest.hash):
                raise JournalError(f"session {session} could not be made from the database", advice="try again")
            end = await asyncio.to_thread(tools.copies.end, session)
            at = StoredLine(end.seq, end.hash, "", b"", end.offset)
            return await self._arrived(held, at, fence, away)
        except BaseException:
            await held.journal.close()
            raise

    async def _arrived(self, held: HeldSession, at: StoredLine, fence: int, away: int | None) -> HeldSession:
        """Return a session of another machine, whose lines are here, with its git objects and under a lease."""
        tools = self._tools
        if tools.refs is not None:
            mine = await tools.signed(held.id, at.seq, at.hash, fence)
            await tools.refs.take_over(mine, held.events)
            await tools.refs.fetch(held.id, held.events)
        return await self._leased(held, _at(CopyState(arrived=at.seq, away_since=away), at, fence))

    def _make_local(self, session: SessionId, newest: int) -> int:
        """Make the local journal what the mirror has up to `newest`; return the last event that this machine knew.

        That they are of another machine is noted first: a takeover that the remote or a crash stops is not forgotten.
        """
        copies, mirrored = self._tools.copies, self._mirror.copies
        if not copies.is_own(session):
            self._tools.states.put(session, CopyState(arrived=newest, away_since=NO_LINE))
            copies.adopt(session, mirrored)
            return NO_LINE
        common = self._tools.states.of(session) or CopyState()
        known = mirrored.line(session, common.seq) if common.seq >= 0 else None
        if common.seq >= 0 and (known is None or known.hash != common.hash):
            raise JournalError(
                f"the database's copy of session {session} does not have event {common.seq} ({common.hash[:12]}), "
                "which this machine copied into it",
                advice="the database was changed or restored; the journal here is as it was",
            )
        away = common.away_since if common.away_since is not None and common.arrived >= common.seq else common.seq
        self._tools.states.put(session, replace(common, arrived=newest, away_since=away))
        copies.continue_from(session, mirrored, common.offset)
        return away

    async def _check_seen(self, session: SessionId, held: HeldSession) -> None:
        """Raise `JournalError` if more of the session was seen than the database and this machine have: it was cut.

        Seen by this machine in the mirror, or by the git remote in the heads that were pushed.
        """
        seen = await asyncio.to_thread(self._mirror.copies.end, session)
        _require_event(held, seen.seq, seen.hash, "this machine has seen")
        if self._tools.refs is not None:
            # The journal here is whole; the remote is asked again before the next push.
            with suppress(StorageError, ConfigError):
                for head in await self._tools.refs.heads(session):
                    _require_event(held, head.seq, head.hash, f"the git remote has, signed under lease {head.fence},")

    async def _leased(self, held: HeldSession, state: CopyState) -> HeldSession:
        """Return a session under a lease, taken if there is none yet; the head of `state` is put into the database."""
        tools, known = self._tools, state
        try:
            state = state if state.fence else replace(state, fence=await tools.leases.claim(held.id))
            head = await tools.signed(held.id, state.seq, state.hash, state.fence)
            await tools.rows.copy(head)
        except DatabaseDownError:
            return await self._copied(held, known, None)
        return await self._copied(held, state, head)

    async def _copied(self, held: HeldSession, state: CopyState, head: SignedHead | None) -> HeldSession:
        await asyncio.to_thread(self._tools.states.put, held.id, state)
        copier = SessionCopier(held.id, self._tools, state, head)
        if held.events:
            copier.tell(held.events[-1].seq)
        copier.start()
        away = state.away_since if held.events and held.events[-1].seq == state.arrived else None
        return replace(held, journal=LeasedJournal(held, copier), fence=state.fence, away_since=away)


def _require_event(held: HeldSession, seq: int, digest: str, who: str) -> None:
    if seq >= 0 and (seq >= len(held.events) or held.events[seq].hash != digest):
        raise JournalError(
            f"{who} event {seq} ({digest[:12]}) of session {held.id}, and the database does not have it any more",
            advice="it was cut or restored; a machine that has the whole journal can copy it again",
        )


def _at(state: CopyState, line: StoredLine, fence: int) -> CopyState:
    """Return the state of a session that is copied up to a line, and leased anew."""
    return replace(state, fence=fence, seq=line.seq, hash=line.hash, offset=line.end, cause="", fenced=False)


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
