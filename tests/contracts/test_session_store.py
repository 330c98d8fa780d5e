"""Contract of `core.ports.stores.SessionStore`."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.journal_rows import LEASE_SECONDS as DATABASE_LEASE_SECONDS
from agent_workbench.adapters.database.shared_opening import LeasedJournal
from agent_workbench.adapters.journal.session_store import LocalSessionStore
from agent_workbench.core import events as e
from agent_workbench.core.errors import JournalError, LockedError, UsageError
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.ports.stores import HeldSession, Journal, SessionStore
from agent_workbench.core.proposal_kinds import PlanProposal
from agent_workbench.core.proposals import PROPOSE_PLAN
from tests.adapters.database.machines import Machine
from tests.adapters.journal.journals import NO_SECRETS, STORY, started, time_of
from tests.contracts.clocks import SetClock
from tests.fakes.session_store import LEASE_SECONDS, MemorySessionStore, StoredSession

T1, T2 = TaskId("T-1"), TaskId("T-2")
UNFINISHED = STORY[1:-1]
NEW = SessionQuery(fresh=True)


class CountedIds:
    """`core.ports.machine.Ids`: one name after the other."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = count()

    def session(self) -> SessionId:
        return SessionId(f"20260102T0304{next(self._numbers):02}-abc234")


class Machines(Protocol):
    """One store as two processes see it."""

    leases: bool

    def process(self, name: str) -> SessionStore:
        """Return the store as a process of this name has it."""

    async def dies(self, opened: HeldSession) -> None:
        """Make the process that holds a session end without closing it."""


class LocalMachine:
    """Files, and locks that the kernel frees."""

    leases = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ids = CountedIds()

    def process(self, name: str) -> SessionStore:
        return LocalSessionStore(self._folder / "repo", self._folder / "registry", self._ids, lambda: NO_SECRETS)

    async def dies(self, opened: HeldSession) -> None:
        await opened.journal.close()

    async def close(self) -> None:
        """Nothing is left to close."""


class SharedMachines:
    """A dictionary for a database; leases run out."""

    leases = True

    def __init__(self, _: Path) -> None:
        self._sessions: dict[SessionId, StoredSession] = {}
        self._ids = CountedIds()
        self._clock = SetClock()

    def process(self, name: str) -> SessionStore:
        return MemorySessionStore(self._sessions, self._ids, self._clock, name)

    async def dies(self, opened: HeldSession) -> None:
        self._clock.seconds += LEASE_SECONDS

    async def close(self) -> None:
        """Nothing is left to close."""


class DatabaseMachines:
    """PostgreSQL: each process is on a machine of its own."""

    leases = True

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        self._ids = CountedIds()
        self._clock = SetClock()
        self._machines: list[Machine] = []

    def process(self, name: str) -> SessionStore:
        self._machines.append(
            Machine(
                self._folder / name,
                self._url,
                str(self._folder),
                self._ids,
                clock=self._clock,
                now=self._clock.monotonic_seconds,
            )
        )
        return self._machines[-1].store()

    async def dies(self, opened: HeldSession) -> None:
        assert isinstance(opened.journal, LeasedJournal)
        await opened.journal.copier.stop()
        self._clock.seconds += DATABASE_LEASE_SECONDS

    async def close(self) -> None:
        for each in self._machines:
            await each.close()


@pytest.fixture(params=["local", "leased", "database"])
def implementation(request: pytest.FixtureRequest, tmp_path: Path) -> LocalMachine | SharedMachines | DatabaseMachines:
    match request.param:
        case "local":
            return LocalMachine(tmp_path)
        case "leased":
            return SharedMachines(tmp_path)
        case _:
            return DatabaseMachines(tmp_path, request.getfixturevalue("migrated_url"))


@pytest.fixture
async def machines(implementation: LocalMachine | SharedMachines | DatabaseMachines) -> AsyncGenerator[Machines]:
    yield implementation
    await implementation.close()


@pytest.fixture
def store(machines: Machines) -> SessionStore:
    return machines.process("one")


@pytest.fixture
def other(machines: Machines) -> SessionStore:
    return machines.process("two")


async def write(journal: Journal, events: tuple[e.Event, ...], first: int = 0) -> None:
    for seq, event in enumerate(events, first):
        await journal.append(seq, time_of(seq), event)


async def begun(store: SessionStore, events: tuple[e.Event, ...] = UNFINISHED) -> SessionId:
    """Begin a session, leave it with T-1 started, and return its name."""
    opened = await store.open(NEW)
    await write(opened.journal, (started(opened.id), *events))
    await opened.journal.close()
    return opened.id


class TestSessionStore:
    """A journal has one writer at a time, and everybody reads the same."""

    async def test_a_new_session_is_empty_and_then_holds_what_was_written(self, store: SessionStore) -> None:
        opened = await store.open(NEW)
        assert (opened.events, opened.torn_bytes, opened.fresh) == ((), 0, True)
        await write(opened.journal, (started(opened.id), *STORY[1:]))
        events = await store.read(opened.id, whole=True)
        assert [each.event for each in events] == [started(opened.id), *STORY[1:]]
        assert [each.seq for each in events] == list(range(len(STORY)))
        assert len({each.hash for each in events}) == len(STORY)
        assert (await store.verify(opened.id)).ok
        await opened.journal.close()

    async def test_events_have_no_gap(self, store: SessionStore) -> None:
        opened = await store.open(NEW)
        await write(opened.journal, (started(opened.id),))
        for wrong in (0, 2):
            with pytest.raises(JournalError):
                await opened.journal.append(wrong, time_of(wrong), STORY[1])
        assert len(await store.read(opened.id)) == 1
        await opened.journal.close()

    async def test_a_session_is_taken_up_as_it_was_left(self, store: SessionStore, other: SessionStore) -> None:
        session = await begun(store)
        opened = await other.open(SessionQuery())
        assert (opened.id, opened.fresh) == (session, False)
        assert [each.event for each in opened.events] == [started(session), *UNFINISHED]
        await write(opened.journal, STORY[-1:], len(opened.events))
        await opened.journal.close()
        assert len(await store.read(session)) == len(STORY)

    async def test_a_label_finds_its_session_and_no_other(self, store: SessionStore, other: SessionStore) -> None:
        wanted, label = SessionQuery(label="../a label"), "../a label"
        opened = await store.open(wanted)
        await write(opened.journal, (replace(started(opened.id), label=label),))
        beside = await other.open(wanted)
        assert beside.fresh
        await write(beside.journal, (replace(started(beside.id), label=label),))
        await beside.journal.close()
        await opened.journal.close()
        assert await store.find(wanted) == max(opened.id, beside.id)
        assert await store.find(SessionQuery(label="another")) is None
        assert await store.find(SessionQuery()) is None

    async def test_a_session_has_one_writer(self, store: SessionStore, other: SessionStore) -> None:
        session = await begun(store)
        opened = await store.open(SessionQuery(session))
        with pytest.raises(LockedError) as refused:
            await other.open(SessionQuery(session))
        assert refused.value.holder
        assert [each.holder for each in await other.summaries()] == [refused.value.holder]
        assert await other.find(SessionQuery()) is None, "somebody has it open"
        await opened.journal.close()
        assert await other.find(SessionQuery()) == session

    async def test_of_two_at_once_one_takes_up_the_session(self, store: SessionStore, other: SessionStore) -> None:
        session = await begun(store)
        opened = await asyncio.gather(store.open(SessionQuery()), other.open(SessionQuery()), return_exceptions=True)
        found = [each for each in opened if isinstance(each, HeldSession)]
        assert [each.id for each in found].count(session) == 1
        for each in found:
            await each.journal.close()

    async def test_a_dead_process_holds_nothing_and_writes_nothing(
        self, machines: Machines, store: SessionStore, other: SessionStore
    ) -> None:
        session = await begun(store)
        old = await store.open(SessionQuery(session))
        await machines.dies(old)
        new = await other.open(SessionQuery(session))
        assert new.fence > old.fence or not machines.leases
        with pytest.raises(LockedError if machines.leases else JournalError):
            await write(old.journal, STORY[-1:], len(old.events))
        await write(new.journal, STORY[-1:], len(new.events))
        await new.journal.close()
        with pytest.raises(LockedError if machines.leases else JournalError):
            await write(old.journal, STORY[-1:], len(STORY))
        assert len(await store.read(session)) == len(STORY)

    async def test_a_session_that_came_to_nothing_is_removed(self, store: SessionStore) -> None:
        await store.discard(await store.open(NEW))
        assert await store.summaries() == ()
        session = await begun(store)
        await store.discard(await store.open(SessionQuery(session)))
        assert [each.id for each in await store.summaries()] == [session]
        assert await store.find(SessionQuery()) == session

    async def test_an_opening_that_is_cancelled_gives_the_journal_back(self, store: SessionStore) -> None:
        session = await begun(store)
        opening = asyncio.ensure_future(store.open(SessionQuery(session)))
        await asyncio.sleep(0)
        opening.cancel()
        (ended,) = await asyncio.gather(opening, return_exceptions=True)
        if isinstance(ended, HeldSession):  # it was open before it heard
            await ended.journal.close()
        again = await store.open(SessionQuery(session))
        await again.journal.close()

    async def test_sessions_are_found_by_their_letters(self, store: SessionStore) -> None:
        with pytest.raises(UsageError):
            await store.locate()
        first, second = await begun(store), await begun(store)
        assert await store.locate() == second
        assert await store.locate(first) == first
        assert await store.locate(first[:-7]) == first
        for name in ("abc234", "xyz"):
            with pytest.raises(UsageError):
                await store.locate(name)

    async def test_one_session_is_summarized_as_in_the_list(self, store: SessionStore) -> None:
        await begun(store)
        for summary in await store.summaries():
            assert await store.summary(summary.id) == summary
        with pytest.raises(UsageError):
            await store.summary(SessionId("20260102T030405-zzzzzz"))

    async def test_only_an_unfinished_session_that_fits_is_taken_up(self, store: SessionStore) -> None:
        unfinished = await begun(store)
        done = await begun(store, STORY[1:])
        assert await store.find(SessionQuery()) == unfinished
        assert await store.find(SessionQuery(tasks=(T2, T1))) == unfinished
        assert await store.find(SessionQuery(tasks=(T2,))) is None
        assert await store.find(SessionQuery(passing=frozenset({T1}))) is None
        assert await store.find(NEW) is None
        assert await store.find(SessionQuery(done)) == done

    async def test_a_session_in_which_a_plan_waits_is_taken_up_if_asked_for(self, store: SessionStore) -> None:
        proposal = PlanProposal(ProposalId("P-2"), PROPOSE_PLAN, "tasks: []", 1)
        session = await begun(store, (e.PlanAsked("goal", 1), e.ActionProposed(proposal)))
        await begun(store, (e.PlanAsked("goal", 1),))
        assert await store.find(SessionQuery(plans=True)) == session
        assert await store.find(SessionQuery()) is None, "an unattended run looks for tasks"

    async def test_a_fork_is_a_session_when_it_is_kept(self, store: SessionStore) -> None:
        parent = await begun(store)
        child, journal = store.fork()
        first = e.SessionStarted(child, "/home/me/shop", STORY[0].base, "0.1.0", parent=parent, parent_seq=1)  # type: ignore[union-attr]
        last = await journal.write([(0, time_of(0), first), (1, time_of(1), STORY[1])])
        assert last.seq == 1
        assert list(await store.origins()) == [parent], "it is no session yet"
        await journal.keep(2, time_of(2), STORY[2])
        assert await store.origins() == {child: (parent, 1), parent: None}
        assert [each.event for each in await store.read(child)] == [first, *STORY[1:3]]

    async def test_nothing_is_left_of_a_fork_that_was_dropped(self, store: SessionStore) -> None:
        child, journal = store.fork()
        await journal.write([(0, time_of(0), started(child))])
        await journal.drop()
        assert await store.summaries() == ()

    async def test_others_follow_a_journal_while_it_is_written(self, store: SessionStore, other: SessionStore) -> None:
        opened = await store.open(NEW)
        await write(opened.journal, (started(opened.id), *STORY[1:3]))
        async with aclosing(other.follow(opened.id, after_seq=0)) as following:
            assert [(await anext(following)).seq for _ in range(2)] == [1, 2]
            coming = asyncio.ensure_future(anext(following))
            recorded = await opened.journal.append(3, time_of(3), STORY[3])
            assert await coming == recorded
        await opened.journal.close()

    async def test_what_is_not_there_cannot_be_read(self, store: SessionStore) -> None:
        missing = SessionId("20260102T030405-zzzzzz")
        with pytest.raises(JournalError):
            await store.read(missing)
        with pytest.raises(JournalError):
            await anext(store.follow(missing))
