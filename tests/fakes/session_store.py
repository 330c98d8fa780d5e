"""A session store in memory that leases its journals, as one shared by machines does."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from hashlib import sha256

from msgspec.structs import replace

from agent_workbench.core.database_report import Backlog
from agent_workbench.core.errors import JournalError, LockedError, UsageError
from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    Event,
    Recorded,
    SessionLeft,
    SessionStarted,
    TaskFinished,
    TaskStarted,
)
from agent_workbench.core.history.journal_proof import VerifyReport
from agent_workbench.core.history.summaries import SessionQuery, SessionSummary, unfinished_session
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.machine import Clock, Ids
from agent_workbench.core.ports.stores import HeldSession

LEASE_SECONDS = 30.0


class StoredSession:
    """The events of one session, and the lease of its journal."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []
        self.news = asyncio.Event()
        self.fence = 0
        self.until = 0.0
        self.holder = ""

    def append(self, seq: int, time: str, event: Event) -> Recorded:
        """Add an event; raise `JournalError` for a number that does not follow."""
        if seq != len(self.events):
            raise JournalError(f"event {seq} cannot be appended, the next one is {len(self.events)}")
        before = self.events[-1].hash if self.events else ""
        recorded = Recorded(seq, time, event, sha256(f"{before}{seq}{time}{event!r}".encode()).hexdigest())
        self.events.append(recorded)
        self.news.set()
        self.news = asyncio.Event()
        return recorded


class LeasedJournal:
    """`core.ports.stores.Journal` under a lease."""

    def __init__(self, stored: StoredSession, fence: int, now: Callable[[], float]) -> None:
        self._stored = stored
        self._fence = fence
        self._now = now

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        if self._fence != self._stored.fence or self._stored.until <= self._now():
            raise LockedError("the lease of the journal ran out", holder=self._stored.holder)
        self._stored.until = self._now() + LEASE_SECONDS
        return self._stored.append(seq, time, event)

    async def close(self) -> None:
        if self._fence == self._stored.fence:
            self._stored.holder, self._stored.until = "", 0.0


class MemoryForkJournal:
    """`core.ports.stores.ForkJournal` that joins the sessions when it is kept."""

    def __init__(self, session: SessionId, sessions: dict[SessionId, StoredSession]) -> None:
        self._session = session
        self._sessions = sessions
        self._stored = StoredSession()

    async def write(self, events: Sequence[tuple[int, str, Event]]) -> Recorded:
        return [self._stored.append(*each) for each in events][-1]

    async def keep(self, seq: int, time: str, event: Event) -> None:
        self._stored.append(seq, time, event)
        self._sessions[self._session] = self._stored

    async def drop(self) -> None:
        self._stored = StoredSession()


class MemorySessionStore:
    """`core.ports.stores.SessionStore`; several may share their `sessions`, as processes share a database."""

    def __init__(self, sessions: dict[SessionId, StoredSession], ids: Ids, clock: Clock, name: str) -> None:
        self._sessions = sessions
        self._ids = ids
        self._clock = clock
        self._name = name

    async def summaries(self) -> tuple[SessionSummary, ...]:
        return tuple(self._summary(each) for each in sorted(self._sessions, reverse=True))

    async def summary(self, session: SessionId) -> SessionSummary:
        if session not in self._sessions:
            raise UsageError(f"there is no session {session}")
        return self._summary(session)

    async def locate(self, name: str = "") -> SessionId:
        names = sorted(self._sessions, reverse=True)
        found = [each for each in names if each.startswith(name) or each.rpartition("-")[2].startswith(name)]
        if not found or (name and len(found) > 1):
            raise UsageError(f"{len(found)} sessions begin with {name!r}")
        return found[0]

    async def find(self, query: SessionQuery) -> SessionId | None:
        if query.name:
            return await self.locate(query.name)
        found = None if query.fresh else unfinished_session(await self.summaries(), query)
        return found.id if found is not None else None

    async def open(self, query: SessionQuery) -> HeldSession:
        session = await self.find(query) or self._ids.session()
        fresh = session not in self._sessions
        stored = self._sessions.setdefault(session, StoredSession())
        now = self._clock.monotonic_seconds()
        if stored.until > now:
            raise LockedError(f"{session} is in use by {stored.holder}", holder=stored.holder)
        stored.fence, stored.until, stored.holder = stored.fence + 1, now + LEASE_SECONDS, self._name
        journal = LeasedJournal(stored, stored.fence, self._clock.monotonic_seconds)
        return HeldSession(session, journal, tuple(stored.events), fresh=fresh, fence=stored.fence)

    async def discard(self, opened: HeldSession) -> None:
        await opened.journal.close()
        if opened.fresh:
            del self._sessions[opened.id]

    def fork(self) -> tuple[SessionId, MemoryForkJournal]:
        session = self._ids.session()
        return session, MemoryForkJournal(session, self._sessions)

    async def read(self, session: SessionId, *, whole: bool = False) -> tuple[Recorded, ...]:
        return tuple(self._of(session).events)

    async def verify(self, session: SessionId) -> VerifyReport:
        events = tuple(self._of(session).events)
        return VerifyReport(tuple(each.hash for each in events), events)

    async def origins(self) -> Mapping[SessionId, tuple[SessionId, int] | None]:
        return {each.id: _origin(each) for each in await self.summaries()}

    def backlog(self) -> Backlog:
        return Backlog()

    async def follow(self, session: SessionId, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        stored, seen = self._of(session), after_seq
        while True:
            news = stored.news
            for recorded in stored.events[seen + 1 :]:
                seen = recorded.seq
                yield recorded
            await news.wait()

    def _of(self, session: SessionId) -> StoredSession:
        if session not in self._sessions:
            raise JournalError(f"there is no journal of {session}")
        return self._sessions[session]

    def _summary(self, session: SessionId) -> SessionSummary:
        stored = self._sessions[session]
        held = stored.until > self._clock.monotonic_seconds()
        summary = SessionSummary(session, events=len(stored.events), ours=True, holder=stored.holder if held else "")
        for recorded in stored.events:
            match recorded.event:
                case ActionProposed():
                    summary = replace(summary, waits=True)
                case ActionDecided():
                    summary = replace(summary, waits=False)
                case SessionStarted(parent=parent, parent_seq=seq, label=label):
                    summary = replace(summary, parent=parent, parent_seq=seq, label=label)
                case TaskStarted(task=task):
                    summary = replace(summary, tasks=(*summary.tasks, task), status=TaskStatus.IN_PROGRESS)
                case TaskFinished(status=status):
                    summary = replace(summary, status=status)
                case SessionLeft():
                    summary = replace(summary, left=True)
                case _:
                    continue
        return summary


def _origin(summary: SessionSummary) -> tuple[SessionId, int] | None:
    if summary.parent is None or summary.parent_seq is None:
        return None
    return summary.parent, summary.parent_seq
