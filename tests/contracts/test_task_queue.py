"""Contract of `core.ports.task_queue.TaskQueue`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.postgres_queue import PostgresQueue
from agent_workbench.core.errors import LockedError, UsageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim, TaskQueue
from agent_workbench.core.task_estimates import Needs
from agent_workbench.subjects.queue.files_adapter import QueueFiles
from agent_workbench.subjects.queue.folder_adapter import FolderQueue
from agent_workbench.subjects.queue.records_adapter import QueueRecords, TaskFacts
from tests.contracts.clocks import SetClock
from tests.fakes.signatures import FakeSignatures
from tests.fakes.stores import MemoryTaskQueue

LEASE_SECONDS = 30.0
SESSION = SessionId("20260102T030405-abc234")


def id_in(text: str) -> str:
    """Return the id that a definition of these tests sets, such as `id: T-1`."""
    return text.removeprefix("id: ") if text.startswith("id: ") else ""


def read_facts(text: str, name: str) -> TaskFacts:
    """Return the facts in a definition of these tests, such as `after T-1 T-2`."""
    before = tuple(text.removeprefix("after ").split()) if text.startswith("after ") else ()
    return TaskFacts(0, before, id_in(text), bool(id_in(text)))


def completed(task: QueuedTask) -> tuple[QueuedTask, Needs]:
    return replace(task, id=id_in(task.definition) or task.id), Needs()


def folder_queue(folder: Path, clock: Clock) -> FolderQueue:
    files = QueueFiles(folder, ("tasks", "queue", "default"))
    return FolderQueue(files, QueueRecords(folder / "state"), clock, read_facts, frozenset)


IMPLEMENTATIONS: dict[str, Callable[[Path, Clock], TaskQueue]] = {
    "memory": lambda folder, clock: MemoryTaskQueue(clock, id_in),
    "folder": folder_queue,
}


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=[*IMPLEMENTATIONS, "postgres"])
async def queue(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> AsyncIterator[TaskQueue]:
    if request.param != "postgres":
        yield IMPLEMENTATIONS[request.param](tmp_path, clock)
        return
    async with Database(request.getfixturevalue("migrated_url")) as database:
        postgres = PostgresQueue(database, "repository", "default", FakeSignatures(), complete=completed, clock=clock)
        yield postgres
        await postgres.close()


async def claimed(queue: TaskQueue, worker: str = "one") -> TaskClaim:
    claim = await queue.claim(worker, LEASE_SECONDS)
    assert claim is not None
    return claim


async def state_of(queue: TaskQueue, task: str = "T-1") -> QueueState:
    (state,) = [each.state for each in await queue.tasks() if each.id == task]
    return state


class TestTaskQueue:
    """Each task ends once, whatever worker dies."""

    async def test_an_empty_queue_gives_nothing(self, queue: TaskQueue) -> None:
        assert await queue.claim("one", LEASE_SECONDS) is None

    async def test_the_same_task_is_queued_once_also_after_its_end(self, queue: TaskQueue) -> None:
        assert await queue.put(QueuedTask("T-1", "goal: a"))
        assert not await queue.put(QueuedTask("T-1", "goal: b"))
        await queue.finish(await claimed(queue), QueueState.DONE, "")
        assert not await queue.put(QueuedTask("T-1", "goal: c"))
        assert [(each.definition, each.state) for each in await queue.tasks()] == [("goal: a", QueueState.DONE)]

    async def test_an_id_that_the_definition_sets_is_the_key_whatever_the_task_is_queued_as(
        self, queue: TaskQueue
    ) -> None:
        assert await queue.put(QueuedTask("a", "id: T-1"))
        assert not await queue.put(QueuedTask("b", "id: T-1"))
        claim = await claimed(queue)
        assert claim.task.id == "T-1"
        assert not await queue.put(QueuedTask("c", "id: T-1"))
        await queue.renew(claim, LEASE_SECONDS, SESSION)
        await queue.park(claim, "a diff waits")
        assert not await queue.put(QueuedTask("d", "id: T-1"))
        assert await queue.resume("T-1") is QueueState.QUEUED
        await queue.finish(await claimed(queue), QueueState.DONE, "")
        assert not await queue.put(QueuedTask("e", "id: T-1"))
        assert await queue.claim("two", LEASE_SECONDS) is None
        assert [(each.id, each.state, each.session) for each in await queue.tasks()] == [
            ("T-1", QueueState.DONE, SESSION)
        ]

    async def test_the_most_urgent_comes_first_then_the_first_by_id(self, queue: TaskQueue) -> None:
        for task in (QueuedTask("T-2", ""), QueuedTask("T-3", "", priority=5), QueuedTask("T-1", "")):
            await queue.put(task)
        assert [(await claimed(queue)).task.id for _ in range(3)] == ["T-3", "T-1", "T-2"]

    async def test_a_task_waits_until_all_that_it_depends_on_is_done(self, queue: TaskQueue) -> None:
        for task, before in (("T-0", ("T-1", "T-2")), ("T-1", ()), ("T-2", ("T-1",))):
            text = f"after {' '.join(before)}" if before else "goal: a"
            assert await queue.put(QueuedTask(task, text, depends_on=before))
        done = []
        while (claim := await queue.claim("one", LEASE_SECONDS)) is not None:
            assert await queue.claim("two", LEASE_SECONDS) is None
            await queue.finish(claim, QueueState.DONE, "")
            done.append(claim.task.id)
        assert done == ["T-1", "T-2", "T-0"]
        assert {each.id: each.depends_on for each in await queue.tasks()}["T-0"] == ("T-1", "T-2")

    async def test_a_task_is_not_free_after_one_that_failed_or_is_unknown(self, queue: TaskQueue) -> None:
        for task, before in (("T-1", ()), ("T-2", ("T-1",)), ("T-3", ("T-9",))):
            text = f"after {' '.join(before)}" if before else "goal: a"
            await queue.put(QueuedTask(task, text, depends_on=before))
        await queue.finish(await claimed(queue), QueueState.FAILED, "its checks fail")
        assert await queue.claim("one", LEASE_SECONDS) is None

    async def test_a_claim_names_its_worker(self, queue: TaskQueue) -> None:
        await queue.put(QueuedTask("T-1", ""))
        await claimed(queue, "gpu-box")
        assert [each.worker for each in await queue.tasks()] == ["gpu-box"]

    async def test_what_was_begun_can_be_continued_before_anything_new(self, queue: TaskQueue, clock: SetClock) -> None:
        for name in ("T-1", "T-2"):
            await queue.put(QueuedTask(name, ""))
        await claimed(queue)
        await queue.renew(await claimed(queue), LEASE_SECONDS, SESSION)
        assert await queue.claim("two", LEASE_SECONDS, begun=True) is None
        clock.seconds += LEASE_SECONDS
        again = await queue.claim("two", LEASE_SECONDS, begun=True)
        assert again is not None
        assert again.task.id == "T-2"
        assert await queue.claim("two", LEASE_SECONDS, begun=True) is None

    async def test_of_many_workers_one_gets_a_task(self, queue: TaskQueue) -> None:
        await queue.put(QueuedTask("T-1", ""))
        found = await asyncio.gather(*(queue.claim(f"worker {number}", LEASE_SECONDS) for number in range(10)))
        assert sum(each is not None for each in found) == 1

    async def test_a_lease_that_is_renewed_holds(self, queue: TaskQueue, clock: SetClock) -> None:
        await queue.put(QueuedTask("T-1", ""))
        claim = await claimed(queue)
        for _ in range(5):
            clock.seconds += LEASE_SECONDS - 1
            await queue.renew(claim, LEASE_SECONDS, SESSION)
            assert await queue.claim("two", LEASE_SECONDS) is None
        assert [each.session for each in await queue.tasks()] == [SESSION]

    async def test_the_task_of_a_dead_worker_goes_to_another_with_its_session(
        self, queue: TaskQueue, clock: SetClock
    ) -> None:
        await queue.put(QueuedTask("T-1", ""))
        old = await claimed(queue)
        await queue.renew(old, LEASE_SECONDS, SESSION)
        clock.seconds += LEASE_SECONDS
        new = await claimed(queue, "two")
        assert (new.task.id, new.task.session) == ("T-1", SESSION)
        assert new.fence > old.fence

    @pytest.mark.parametrize("ended", [False, True], ids=["while the new one works", "after the new one ended"])
    async def test_a_worker_with_an_old_claim_changes_nothing(
        self, queue: TaskQueue, clock: SetClock, ended: bool
    ) -> None:
        await queue.put(QueuedTask("T-1", ""))
        old = await claimed(queue)
        clock.seconds += LEASE_SECONDS
        new = await claimed(queue, "two")
        if ended:
            await queue.finish(new, QueueState.DONE, "done by two")
        before = await queue.tasks()
        for late in (
            queue.renew(old, LEASE_SECONDS),
            queue.park(old, "late"),
            queue.finish(old, QueueState.FAILED, "late"),
        ):
            with pytest.raises(LockedError):
                await late
        assert await queue.tasks() == before

    async def test_a_claim_that_ran_out_counts_no_more_though_nobody_took_the_task(
        self, queue: TaskQueue, clock: SetClock
    ) -> None:
        await queue.put(QueuedTask("T-1", ""))
        claim = await claimed(queue)
        clock.seconds += LEASE_SECONDS
        with pytest.raises(LockedError):
            await queue.finish(claim, QueueState.DONE, "")

    async def test_a_fence_cannot_be_made_up(self, queue: TaskQueue) -> None:
        await queue.put(QueuedTask("T-1", ""))
        claim = await claimed(queue)
        for forged in (replace(claim, fence=claim.fence + 1), replace(claim, worker="two")):
            with pytest.raises(LockedError):
                await queue.finish(forged, QueueState.DONE, "")

    async def test_a_parked_task_waits_until_it_is_resumed(self, queue: TaskQueue) -> None:
        await queue.put(QueuedTask("T-1", ""))
        first = await claimed(queue)
        await queue.renew(first, LEASE_SECONDS, SESSION)
        await queue.park(first, "a diff waits")
        assert await queue.claim("two", LEASE_SECONDS) is None
        assert await state_of(queue) is QueueState.PARKED
        await queue.resume("T-1")
        again = await claimed(queue, "two")
        assert again.task.session == SESSION
        assert again.fence > first.fence

    async def test_resuming_what_is_not_parked_changes_nothing(self, queue: TaskQueue) -> None:
        await queue.put(QueuedTask("T-1", ""))
        await queue.finish(await claimed(queue), QueueState.FAILED, "it failed")
        assert await queue.resume("T-1") is QueueState.FAILED
        with pytest.raises(UsageError):
            await queue.resume("T-9")
        assert [(each.state, each.reason) for each in await queue.tasks()] == [(QueueState.FAILED, "it failed")]

    async def test_a_withdrawn_task_is_over_and_its_claim_counts_no_more(self, queue: TaskQueue) -> None:
        await queue.put(QueuedTask("T-1", ""))
        await queue.put(QueuedTask("T-2", ""))
        claim = await claimed(queue)
        assert await queue.withdraw("T-1", "not wanted")
        assert await queue.withdraw("T-2", "not wanted")
        with pytest.raises(LockedError):
            await queue.finish(claim, QueueState.DONE, "")
        assert await queue.claim("two", LEASE_SECONDS) is None
        assert not await queue.withdraw("T-1", "again")
        assert [(each.id, each.reason) for each in await queue.tasks(QueueState.WITHDRAWN)] == [
            ("T-1", "not wanted"),
            ("T-2", "not wanted"),
        ]
        assert await queue.tasks(QueueState.QUEUED, QueueState.CLAIMED) == ()
        with pytest.raises(UsageError):
            await queue.withdraw("T-9", "")

    async def test_a_task_ends_as_done_or_failed(self, queue: TaskQueue) -> None:
        await queue.put(QueuedTask("T-1", ""))
        claim = await claimed(queue)
        with pytest.raises(UsageError):
            await queue.finish(claim, QueueState.QUEUED, "")
        assert await state_of(queue) is QueueState.CLAIMED
