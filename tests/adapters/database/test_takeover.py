"""A session that continues on another machine, and databases that say something else than what was signed."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from agent_workbench.adapters.database.journal_rows import LEASE_SECONDS
from agent_workbench.adapters.database.shared_opening import LeasedJournal
from agent_workbench.core import events as e
from agent_workbench.core.errors import DatabaseDownError, JournalError, LockedError
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.stores import HeldSession
from tests.adapters.database.machines import Machine
from tests.adapters.journal.journals import LONG, STORY, started
from tests.contracts.clocks import SetClock
from tests.contracts.test_session_store import CountedIds, write

PARKED = STORY[1:-1]
"""Has a blob: the long output of an action."""


class Fleet:
    """Machines on one database, with one clock."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.clock, self.ids = SetClock(), CountedIds()
        self._machines: dict[str, Machine] = {}

    def machine(self, name: str) -> Machine:
        """Return a machine by its name."""
        if name not in self._machines:
            self._machines[name] = Machine(
                self.folder / name,
                self.url,
                str(self.folder),
                self.ids,
                clock=self.clock,
                now=self.clock.monotonic_seconds,
            )
        return self._machines[name]

    async def parked(self) -> SessionId:
        """Let the first machine begin a session and leave it."""
        opened = await self.machine("one").store().open(SessionQuery(fresh=True))
        await write(opened.journal, (started(opened.id), *PARKED))
        await opened.journal.close()
        return opened.id

    async def forge(self, statement: str, *values: object) -> None:
        """Change the database as who has its password can."""
        async with self.machine("forger").database.connection() as connection:
            assert (await connection.execute(statement.encode(), values)).rowcount > 0

    async def close(self) -> None:
        """Close what is open."""
        for each in self._machines.values():
            await each.close()


@pytest.fixture
async def fleet(migrated_url: str, tmp_path: Path) -> AsyncGenerator[Fleet]:
    fleet = Fleet(tmp_path, migrated_url)
    yield fleet
    await fleet.close()


async def lines_of(machine: Machine, session: SessionId) -> bytes:
    """Return the journal that a machine has."""
    return await asyncio.to_thread((Path(machine.copies.folder(session)) / "journal.jsonl").read_bytes)


async def die(opened: HeldSession, clock: SetClock) -> None:
    """Let the process that has a session end without a word, and its lease run out."""
    assert isinstance(opened.journal, LeasedJournal)
    await opened.journal.abandon()
    clock.seconds += LEASE_SECONDS


async def test_the_journal_is_the_same_on_the_other_machine(fleet: Fleet) -> None:
    session = await fleet.parked()
    one, two = fleet.machine("one"), fleet.machine("two")
    opened = await two.store().open(SessionQuery(session))
    assert (opened.fence, opened.away_since) == (2, -1)
    assert await lines_of(two, session) == await lines_of(one, session)
    assert await asyncio.to_thread(two.copies.is_own, session)
    (finished,) = [each.event for each in await two.store().read(session, whole=True) if each.seq == 4]
    assert isinstance(finished, e.ActionFinished)
    assert finished.output == LONG
    await opened.journal.close()


async def test_a_session_comes_back_with_what_was_done_elsewhere(fleet: Fleet) -> None:
    session = await fleet.parked()
    one, two = fleet.machine("one"), fleet.machine("two")
    away = await two.store().open(SessionQuery(session))
    await write(away.journal, (e.SessionResumed(),), len(away.events))
    await away.journal.close()
    back = await one.store().open(SessionQuery(session))
    assert (back.fence, back.away_since) == (3, len(PARKED))
    assert back.events[-1].event == e.SessionResumed()
    await die(back, fleet.clock)
    again = await one.store().open(SessionQuery(session))
    assert again.away_since == len(PARKED), "nothing was recorded here since it came back"
    await write(again.journal, (e.SessionResumed(),), len(again.events))
    await again.journal.close()
    later = await one.store().open(SessionQuery(session))
    assert later.away_since is None
    await later.journal.close()


async def test_what_was_not_copied_before_a_takeover_stays_and_is_named(fleet: Fleet) -> None:
    session = await fleet.parked()
    one, two = fleet.machine("one"), fleet.machine("two")
    old = await one.store().open(SessionQuery(session))
    assert isinstance(old.journal, LeasedJournal)
    await old.journal.copier.stop()  # it is frozen
    await write(old.journal, (e.RetryAsked(),), len(old.events))
    fleet.clock.seconds += LEASE_SECONDS
    new = await two.store().open(SessionQuery(session))
    await write(new.journal, (e.SessionResumed(),), len(new.events))
    await new.journal.close()
    with pytest.raises(LockedError) as refused:
        await write(old.journal, (e.ActionStarted(STORY[3].proposal_id),), len(old.events) + 1)  # type: ignore[union-attr]
    assert "were not copied before; they stay in" in str(refused.value)
    await old.journal.close()
    back = await one.store().open(SessionQuery(session))
    assert back.events[-1].event == e.SessionResumed()
    aside = Path(one.copies.folder(session)) / "journal.fenced-1"
    assert b'"kind":"retry_asked"' in await asyncio.to_thread(aside.read_bytes)
    await back.journal.close()


@pytest.mark.parametrize("change", ["DELETE FROM agent_leases", "UPDATE agent_leases SET fence = 0, until = 0"])
async def test_no_number_is_given_again_after_somebody_changed_the_row_of_a_lease(fleet: Fleet, change: str) -> None:
    session = await fleet.parked()
    one, two = fleet.machine("one"), fleet.machine("two")
    old = await one.store().open(SessionQuery(session))
    assert isinstance(old.journal, LeasedJournal)
    await write(old.journal, (e.SessionResumed(),), len(old.events))
    await old.journal.copier.stop()  # it is frozen, with a head under its number
    async with one.database.connection() as connection:
        await connection.execute(change.encode())
    new = await two.store().open(SessionQuery(session))
    assert isinstance(new.journal, LeasedJournal)
    assert new.journal.copier.fence > old.journal.copier.fence
    await new.journal.close()
    await old.journal.close()


async def test_others_see_what_a_machine_writes_after_it_took_a_session_over(fleet: Fleet) -> None:
    session = await fleet.parked()
    one, two = fleet.machine("one").store(), fleet.machine("two").store()
    following = one.follow(session, after_seq=len(PARKED))
    new = await two.open(SessionQuery(session))
    await write(new.journal, (e.SessionResumed(),), len(new.events))
    assert (await anext(following)).event == e.SessionResumed()
    await following.aclose()
    assert await one.elsewhere(session)
    assert (await one.summary(session)).worker == "two"
    assert (await two.summary(session)).worker == ""
    await new.journal.close()


FORGERIES: dict[str, Callable[[str], tuple[str, str]]] = {
    "a changed line": lambda _: (
        "UPDATE agent_lines SET line = replace(line, 'T-1', 'T-2') WHERE seq = 2",
        "do not lead to its signed head",
    ),
    "a line that is missing": lambda _: ("DELETE FROM agent_lines WHERE seq = 3", "has no line of event 3"),
    "lines that were cut": lambda _: ("DELETE FROM agent_lines WHERE seq > 3", "has no line of event 4"),
    "a line as long as none": lambda _: (
        "UPDATE agent_lines SET line = repeat('x', 8000001) WHERE seq = 1",
        "has no line of event 1",
    ),
    "a head without a signature": lambda _: ("UPDATE agent_heads SET signature = ''", "it is not signed"),
    "a head of an earlier event": lambda _: ("UPDATE agent_heads SET seq = 2", "does not count"),
    "a head of another event": lambda _: (
        "UPDATE agent_heads SET (seq, hash) = (SELECT seq, hash FROM agent_lines WHERE seq = 2 LIMIT 1)",
        "does not count",
    ),
    "a head of a later lease": lambda _: ("UPDATE agent_heads SET fence = 9", "does not count"),
    "a head of a stranger": lambda session: (
        f"INSERT INTO agent_heads SELECT repository, '{session}', 99, 1, 'a', 'mallory', 'mallory 00' FROM agent_heads",
        "does not count",
    ),
    "a changed blob": lambda _: ("UPDATE agent_blobs SET data = set_byte(data, 0, 0)", "was changed"),
    "a blob that is missing": lambda _: ("DELETE FROM agent_blobs", "has no blob"),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_what_is_not_what_was_signed_is_refused_and_named(fleet: Fleet, name: str) -> None:
    session = await fleet.parked()
    statement, said = FORGERIES[name](session)
    await fleet.forge(statement)
    two = fleet.machine("two")
    for attempt in (two.store().open(SessionQuery(session)), two.store().read(session)):
        with pytest.raises(JournalError, match=said):
            await attempt
    (listed,) = await two.store().summaries()
    assert listed.problem or "blob" in name, "the list reads no blobs"
    assert not two.copies.size(session)
    assert not await asyncio.to_thread(two.copies.is_own, session)
    await fleet.machine("one").leases.claim(session)  # the refused one holds nothing


@pytest.mark.slow(quick=6)
@pytest.mark.parametrize("seen", ["one", "two"])
@pytest.mark.parametrize("name", FORGERIES)
async def test_verify_finds_what_was_changed_after_it_was_seen(fleet: Fleet, name: str, seen: str) -> None:
    session = await fleet.parked()
    store = fleet.machine(seen).store()
    assert (await store.verify(session)).ok
    statement, _ = FORGERIES[name](session)
    await fleet.forge(statement)
    try:
        report = await store.verify(session)
    except JournalError:
        return
    assert report.problems


async def test_verify_finds_rows_that_were_removed(fleet: Fleet) -> None:
    session = await fleet.parked()
    for table in ("agent_heads", "agent_lines", "agent_leases"):
        await fleet.forge(f"DELETE FROM {table}")
    (problem,) = (await fleet.machine("one").store().verify(session)).problems
    assert "does not have the session any more" in str(problem)


async def test_lines_beyond_the_head_do_not_count(fleet: Fleet) -> None:
    session = await fleet.parked()
    await fleet.forge(
        "INSERT INTO agent_lines SELECT repository, session, seq + 1, hash, line FROM agent_lines WHERE seq = %s",
        len(PARKED),
    )
    opened = await fleet.machine("two").store().open(SessionQuery(session))
    assert len(opened.events) == len(PARKED) + 1
    await write(opened.journal, (e.SessionResumed(),), len(opened.events))
    await opened.journal.close()
    assert (await fleet.machine("one").store().read(session))[-1].event == e.SessionResumed()


async def test_a_database_that_was_set_back_is_noticed_by_who_saw_more(fleet: Fleet) -> None:
    session = await fleet.parked()
    one, two = fleet.machine("one"), fleet.machine("two")
    new = await two.store().open(SessionQuery(session))
    await write(new.journal, (e.SessionResumed(),), len(new.events))
    await new.journal.close()
    assert len(await one.store().read(session)) == len(PARKED) + 2
    await fleet.forge("DELETE FROM agent_heads WHERE fence > 1")
    await fleet.forge("DELETE FROM agent_lines WHERE seq > %s", len(PARKED))
    three = fleet.machine("three")
    assert len(await three.store().read(session)) == len(PARKED) + 1, "who never saw more cannot tell"
    with pytest.raises(JournalError, match="this machine has seen event"):
        await one.store().open(SessionQuery(session))


async def test_a_session_that_was_removed_there_is_not_begun_again(fleet: Fleet) -> None:
    session = await fleet.parked()
    two = fleet.machine("two").store()
    await two.read(session)
    for table in ("agent_heads", "agent_lines", "agent_leases"):
        await fleet.forge(f"DELETE FROM {table}")
    with pytest.raises(JournalError, match="no longer has session"):
        await two.open(SessionQuery(session))
    again = await fleet.machine("one").store().open(SessionQuery(session))  # the journal itself is there
    await again.journal.close()
    assert len(await two.read(session)) == len(PARKED) + 1


async def test_a_folder_that_the_repository_brought_is_not_taken_for_the_session(fleet: Fleet) -> None:
    session = await fleet.parked()
    two = fleet.machine("two")
    folder, lines = Path(two.copies.folder(session)), await lines_of(fleet.machine("one"), session)

    def bring() -> None:
        folder.mkdir(parents=True)
        (folder / "journal.jsonl").write_bytes(lines)

    await asyncio.to_thread(bring)
    with pytest.raises(LockedError, match="was not begun here"):
        await two.store().open(SessionQuery(session))


async def test_without_the_database_nobody_says_that_there_is_no_such_session(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "two", f"postgresql://agent@/none?host={tmp_path}", "repository", CountedIds())
    store, session = machine.store(), SessionId("20260102T030405-abc234")
    for asked in (
        store.read(session),
        store.summary(session),
        store.find(SessionQuery(session)),
        store.verify(session),
    ):
        with pytest.raises(DatabaseDownError):
            await asked
    await store.close()
    await machine.database.close()
