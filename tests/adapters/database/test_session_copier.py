"""Copies in the background: what is copied, in which order, and after which failures."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from agent_workbench.adapters.database import session_copier as copier_module
from agent_workbench.adapters.database.journal_rows import NAMES_GIT, ready_lines
from agent_workbench.adapters.database.shared_opening import LeasedJournal
from agent_workbench.core import events as e
from agent_workbench.core.errors import DatabaseDownError, LockedError, StorageError
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.ports.shared_state import StoredLine
from tests.adapters.database.machines import Machine
from tests.adapters.journal.journals import STORY, started
from tests.contracts.test_session_store import CountedIds, write
from tests.fakes.signatures import FakeSignatures

NEW = SessionQuery(fresh=True)
EVENTS = STORY[1:]


class RefsInMemory:
    """`core.ports.shared_state.SessionRefs` that tells when it was pushed."""

    def __init__(self) -> None:
        self.pushed: list[SignedHead] = []
        self.down = False

    async def check(self) -> int:
        return len(self.pushed)

    async def task_commit(self, task: TaskId) -> str:
        return ""

    async def push(self, head: SignedHead, *, if_missing: bool = False) -> tuple[str, ...]:
        if self.down:
            raise StorageError("the remote does not answer")
        self.pushed.append(head)
        return ()

    async def take_over(self, head: SignedHead, recorded: Sequence[Recorded]) -> None:
        await self.push(head)

    async def fetch(self, session: SessionId, recorded: Sequence[Recorded]) -> SignedHead | None:
        return None

    async def heads(self, session: SessionId) -> tuple[SignedHead, ...]:
        return tuple(self.pushed)

    async def remove(self, session: SessionId, refs: Mapping[str, str]) -> None:
        pass


@pytest.fixture
async def machine(migrated_url: str, tmp_path: Path) -> AsyncGenerator[Machine]:
    machine = Machine(tmp_path / "one", migrated_url, str(tmp_path), CountedIds(), refs=RefsInMemory())
    yield machine
    await machine.close()


@pytest.fixture
async def other(machine: Machine, migrated_url: str, tmp_path: Path) -> AsyncGenerator[Machine]:
    other = Machine(tmp_path / "two", migrated_url, str(tmp_path), CountedIds())
    yield other
    await other.close()


def line(seq: int, kind: str) -> StoredLine:
    return StoredLine(seq, "", kind, b"", seq)


@pytest.mark.parametrize(
    ("kinds", "together"),
    [
        (("plan_read", "prompt_built"), 2),
        (("plan_read", "task_started", "prompt_built"), 1),
        (("task_started", "prompt_built", "checkpoint_taken"), 2),
        (("patch_applied",), 0),
        (("patch_applied", "checkpoint_taken", "action_finished"), 2),
        (("patch_applied", "action_finished", "prompt_built"), 2),
        ((), 0),
    ],
)
def test_lines_that_name_git_objects_wait_for_their_push(kinds: tuple[str, ...], together: int) -> None:
    assert len(ready_lines([line(seq, kind) for seq, kind in enumerate(kinds)])) == together


def test_every_event_with_a_commit_or_a_checkpoint_waits() -> None:
    assert {"checkpoint_taken", "session_forked", "task_started", "task_committed", "task_rolled_back"} == NAMES_GIT


async def test_what_names_git_objects_is_copied_after_the_push_of_the_head_before(
    machine: Machine, other: Machine
) -> None:
    opened = await machine.store().open(NEW)
    await write(opened.journal, (started(opened.id), *EVENTS))
    await opened.journal.close()
    assert isinstance(machine.refs, RefsInMemory)
    began = STORY.index(next(each for each in STORY if isinstance(each, e.TaskStarted)))
    assert [head.seq for head in machine.refs.pushed] == [began - 1, len(EVENTS)]
    assert len(await other.store().read(opened.id)) == len(EVENTS) + 1


async def test_without_the_remote_nothing_that_needs_it_is_copied(machine: Machine, other: Machine) -> None:
    assert isinstance(machine.refs, RefsInMemory)
    machine.refs.down = True
    store = machine.store()
    opened = await store.open(NEW)
    await write(opened.journal, (started(opened.id), *EVENTS))
    assert store.backlog().cause == "the remote does not answer"
    await opened.journal.close()
    assert len(await other.store().read(opened.id)) == 2
    backlog = await asyncio.to_thread(machine.states.backlog, machine.copies)
    assert (backlog.lines, backlog.cause) == (len(EVENTS) - 1, "the remote does not answer")
    machine.refs.down = False
    await _rest_copied(machine)
    assert len(await other.store().read(opened.id)) == len(EVENTS) + 1


async def test_the_start_of_an_action_waits_for_its_copy(machine: Machine, other: Machine) -> None:
    opened = await machine.store().open(NEW)
    await write(opened.journal, (started(opened.id), e.ActionStarted(ProposalId("p1"))))
    assert len(await other.store().read(opened.id)) == 2
    await opened.journal.close()


async def test_work_goes_on_without_the_database_and_copying_goes_on_with_it(
    machine: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = asyncio.Event()
    claim = machine.leases.claim

    async def down(session: SessionId) -> int:
        if not back.is_set():
            raise DatabaseDownError("the database does not answer")
        return await claim(session)

    monkeypatch.setattr(machine.leases, "claim", down)
    monkeypatch.setattr(copier_module, "FIRST_PAUSE", 0.01)
    store = machine.store()
    opened = await store.open(NEW)
    await write(opened.journal, (started(opened.id), *EVENTS))
    assert (opened.fence, store.backlog().cause) == (0, "the database does not answer")
    assert isinstance(opened.journal, LeasedJournal)
    back.set()
    copier = opened.journal.copier
    await _until(lambda: not copier.cause)
    await opened.journal.close()
    assert opened.journal.copier.fence == 1
    assert store.backlog().lines == 0
    assert len(await other.store().read(opened.id)) == len(EVENTS) + 1


async def test_who_works_without_the_database_loses_the_session_to_who_took_it_meanwhile(
    machine: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await machine.store().open(NEW)
    await write(begun.journal, (started(begun.id), *EVENTS[:2]))
    await begun.journal.close()
    claim, down = machine.leases.claim, True

    async def maybe(session: SessionId) -> int:
        if down:
            raise DatabaseDownError("the database does not answer")
        return await claim(session)

    monkeypatch.setattr(machine.leases, "claim", maybe)
    monkeypatch.setattr(copier_module, "FIRST_PAUSE", 0.01)
    offline = await machine.store().open(SessionQuery(begun.id))
    await write(offline.journal, (e.RetryAsked(),), len(offline.events))
    taken = await other.store().open(SessionQuery(begun.id))
    await write(taken.journal, (e.SessionResumed(),), len(taken.events))
    await taken.journal.close()
    down = False
    assert isinstance(offline.journal, LeasedJournal)
    copier = offline.journal.copier
    await _until(lambda: copier.lost is not None)
    with pytest.raises(LockedError):
        await write(offline.journal, (e.RetryAsked(),), len(offline.events) + 1)
    await offline.journal.close()
    assert (await machine.store().read(begun.id))[-1].event == e.SessionResumed()


async def test_a_key_that_cannot_be_used_stops_the_copies_and_not_the_work(machine: Machine) -> None:
    store = machine.store()
    opened = await store.open(NEW)
    assert isinstance(machine.signatures, FakeSignatures)
    machine.signatures.broken = True
    await write(opened.journal, (started(opened.id), e.ActionStarted(ProposalId("p1"))))
    assert "the signing key cannot be read" in store.backlog().cause
    await opened.journal.close()


POINTS = ("put_blob", "copy", "push", "states")


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("after", [False, True])
async def test_what_a_dead_process_left_is_copied_by_the_next(
    machine: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch, point: str, *, after: bool
) -> None:
    opened = await machine.store().open(NEW)
    assert isinstance(opened.journal, LeasedJournal)
    dead = _dies_at(machine, point, monkeypatch, after=after)
    await write(opened.journal, (started(opened.id), *EVENTS[:2]))
    for seq, event in enumerate(EVENTS[2:], 3):
        append = asyncio.ensure_future(
            opened.journal.held.journal.append(seq, f"2026-01-02T03:04:05.{seq:06d}Z", event)
        )
        await append
        opened.journal.copier.tell(seq)
    await asyncio.wait_for(dead.wait(), 10)
    await opened.journal.abandon()
    monkeypatch.undo()
    await _rest_copied(machine)
    assert len(await other.store().read(opened.id)) == len(EVENTS) + 1
    resumed = await other.store().open(SessionQuery(opened.id))
    assert [each.hash for each in resumed.events] == [each.hash for each in await machine.store().read(opened.id)]
    await resumed.journal.close()


def _dies_at(machine: Machine, point: str, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> asyncio.Event:
    """Let nothing more happen in the copier from the second use of a write on: before it, or after it."""
    dead, uses = asyncio.Event(), 0
    loop = asyncio.get_running_loop()
    if point == "states":
        put = machine.states.put

        def dying_put(*values: object) -> None:
            if after:
                put(*values)  # type: ignore[arg-type]
            loop.call_soon_threadsafe(dead.set)
            raise StorageError("dead")

        monkeypatch.setattr(machine.states, "put", dying_put)
        return dead
    target = machine.refs if point == "push" else machine.rows
    write_it = getattr(target, point)

    async def dying(*values: object, **named: object) -> object:
        nonlocal uses
        uses += 1
        if point == "copy" and uses == 1:
            return await write_it(*values, **named)
        if after:
            await write_it(*values, **named)
        dead.set()
        await asyncio.Event().wait()
        return ()

    monkeypatch.setattr(target, point, dying)
    return dead


async def _rest_copied(machine: Machine) -> None:
    """Let a new process of the machine copy what was left."""
    store = machine.store()
    opened = await store.open(NEW)
    await _until(lambda: not machine.states.behind(machine.copies))
    await store.discard(opened)


async def _until(happened: Callable[[], bool]) -> None:
    for _ in range(2000):
        if await asyncio.to_thread(happened):
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not happen within 20 s")
