"""The queue in a real PostgreSQL, by the clock of the server: forged rows, dead workers, lost answers, routing."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.postgres_queue import PostgresQueue
from agent_workbench.adapters.database.registry import DatabaseRegistry
from agent_workbench.adapters.database.task_rows import MAX_BODY_BYTES
from agent_workbench.core.errors import LockedError, StorageError, UsageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskOrigin, TaskStatus
from agent_workbench.core.ports.task_queue import MOST_ATTEMPTS, QueuedTask, QueueState, TaskClaim
from agent_workbench.core.signed import PERSON_PURPOSES, WORKER_PURPOSES
from agent_workbench.core.task_estimates import Needs
from agent_workbench.core.task_result import TaskResult
from agent_workbench.core.workers import WorkerRecord
from agent_workbench.subjects.queue.wiring import completed_task
from tests.fakes.signatures import FakeSignatures

REPOSITORY = "4b825dc"
LEASE = 30.0
SESSION = SessionId("20260102T030405-abc234")
RESULT = TaskResult("T-1", TaskStatus.DONE, "done", 0)
Machine = Callable[[str], PostgresQueue]


@pytest.fixture
async def database(migrated_url: str) -> AsyncIterator[Database]:
    async with Database(migrated_url) as opened:
        yield opened


@pytest.fixture
async def machine(database: Database) -> AsyncIterator[Machine]:
    """Makes the queue of a machine: `ada@laptop` may put tasks, the others only work."""
    allowed = {"ada@laptop": PERSON_PURPOSES, "box": WORKER_PURPOSES, "den": WORKER_PURPOSES}
    made: list[PostgresQueue] = []

    def make(name: str) -> PostgresQueue:
        needs = {"gpu": Needs(gpu_vram_gb=16.0)}
        made.append(
            PostgresQueue(
                database,
                REPOSITORY,
                "default",
                FakeSignatures(name, {key: value for key, value in allowed.items() if key != name}),
                complete=lambda task: (task, needs.get(task.definition, Needs())),
                poll_seconds=0.2,
            )
        )
        return made[-1]

    yield make
    for each in made:
        await each.close()


async def claimed(queue: PostgresQueue, worker: str = "box") -> TaskClaim:
    claim = await queue.claim(worker, LEASE)
    assert claim is not None
    return claim


async def change(database: Database, statement: str) -> None:
    """Change the table as somebody would who has the database and no key."""
    async with database.connection() as connection:
        await connection.execute(statement.encode())


async def run_out(database: Database) -> None:
    """Let the leases of all claims end, as if their workers had been silent; the server runs for a day."""
    await change(database, "UPDATE agent_tasks SET lease_until = now() - interval '1 s' WHERE lease_until IS NOT NULL")


@pytest.fixture(autouse=True)
def without_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server count as one that runs for long."""
    monkeypatch.setattr("agent_workbench.adapters.database.queue_context.GRACE_SECONDS", 0.0)


class TestWorkers:
    """Several machines, one of them dead or late."""

    async def test_a_task_goes_from_one_machine_to_another_and_ends_once(self, machine: Machine) -> None:
        laptop, box = machine("ada@laptop"), machine("box")
        assert await laptop.put(QueuedTask("T-1", "goal: a", 3))
        claim = await claimed(box)
        assert (claim.task.definition, claim.task.priority, claim.task.origin) == ("goal: a", 3, TaskOrigin.DATABASE)
        await box.renew(claim, LEASE, SESSION)
        await box.finish(claim, QueueState.DONE, "done", RESULT)
        assert await laptop.result("T-1") == RESULT
        assert [(each.state, each.session) for each in await laptop.tasks()] == [(QueueState.DONE, SESSION)]

    async def test_a_row_whose_text_sets_the_id_of_another_one_is_not_run(
        self, machine: Machine, database: Database
    ) -> None:
        # Versions that numbered a document which was queued twice left such rows.
        for row in ("T-1", "T-1-2"):
            assert await machine("ada@laptop").put(QueuedTask(row, "id: T-1\ngoal: a"))
        reads = PostgresQueue(database, REPOSITORY, "default", FakeSignatures("ada@laptop"), complete=completed_task)
        assert (await claimed(reads)).task.id == "T-1"
        assert await reads.claim("box", LEASE) is None
        ((row, reason),) = reads.refused()
        assert (row, "its text sets the id T-1" in reason) == ("T-1-2", True)
        await reads.close()
        assert {each.id: each.state for each in await machine("den").tasks()}["T-1-2"] is QueueState.FAILED

    async def test_an_answer_that_was_lost_is_asked_for_again(self, machine: Machine) -> None:
        laptop = machine("ada@laptop")
        await laptop.put(QueuedTask("T-1", "goal: a"))
        claim = await claimed(laptop)
        for _ in range(2):
            await laptop.finish(claim, QueueState.DONE, "done", RESULT)
        with pytest.raises(LockedError):
            await laptop.finish(claim, QueueState.FAILED, "no")

    async def test_three_lost_claims_park_a_task_until_a_person_frees_it(
        self, machine: Machine, database: Database
    ) -> None:
        queue = machine("ada@laptop")
        await queue.put(QueuedTask("T-1", "goal: a"))
        for worker in ("box", "den", "attic"):
            claim = await claimed(queue, worker)
            assert claim.task.lost == ("box", "den", "attic")[: claim.fence - 1]
            await run_out(database)
        assert await queue.claim("cellar", LEASE) is None
        (task,) = await queue.tasks(QueueState.PARKED)
        assert task.exhausted
        assert task.reason.endswith("the workers gave no sign any more: box, den, attic")
        await queue.resume("T-1")
        assert (await claimed(queue, "cellar")).task.lost == ()

    async def test_a_lost_task_goes_to_another_worker_if_one_is_there(
        self, machine: Machine, database: Database
    ) -> None:
        queue, registry = machine("ada@laptop"), DatabaseRegistry(database, REPOSITORY, "default")
        for name in ("box", "den"):
            await registry.beat(WorkerRecord(name, instance=name))
        await queue.put(QueuedTask("T-1", "goal: a"))
        await claimed(queue)
        await run_out(database)
        assert await queue.claim("box", LEASE) is None
        assert (await claimed(queue, "den")).task.lost == ("box",)

    async def test_a_worker_that_is_alone_gets_its_lost_task_again(self, machine: Machine, database: Database) -> None:
        queue = machine("ada@laptop")
        await queue.put(QueuedTask("T-1", "goal: a"))
        await claimed(queue)
        await run_out(database)
        assert (await claimed(queue)).fence == 2

    async def test_a_worker_that_ends_gives_its_tasks_back_at_once(self, machine: Machine) -> None:
        box, den = machine("ada@laptop"), machine("den")
        await box.put(QueuedTask("T-1", "goal: a"))
        old = await claimed(box)
        await box.close()
        new = await claimed(den, "den")
        assert (new.fence, new.task.lost) == (2, ())
        with pytest.raises(LockedError):
            await box.renew(old, LEASE)

    async def test_a_worker_that_waits_is_woken_without_polling(self, machine: Machine) -> None:
        laptop, box = machine("ada@laptop"), machine("box")
        assert await box.claim("box", LEASE) is None
        await asyncio.wait_for(box.news.wait(), 5)
        box.news.clear()
        before = box.mark()
        await laptop.put(QueuedTask("T-1", "goal: a"))
        await asyncio.wait_for(box.news.wait(), 5)
        assert box.mark() != before
        assert (await laptop.tasks())[0].worker == "box"
        assert (await claimed(box)).routing is not None

    async def test_a_chosen_worker_that_does_not_come_is_passed_over(
        self, machine: Machine, database: Database
    ) -> None:
        queue = machine("ada@laptop")
        assert await queue.claim("box", LEASE) is None
        await queue.put(QueuedTask("T-1", "goal: a"))
        assert await queue.claim("den", LEASE) is None
        await run_out(database)
        claim = await claimed(queue, "den")
        assert (claim.fence, claim.task.lost) == (1, ())

    async def test_twenty_workers_do_a_hundred_tasks_once_each(self, machine: Machine) -> None:
        queue = machine("ada@laptop")
        for number in range(100):
            await queue.put(QueuedTask(f"T-{number}", "goal: a"))
        done: list[str] = []

        async def work(name: str) -> None:
            while (claim := await queue.claim(name, LEASE)) is not None:
                done.append(claim.task.id)
                await queue.finish(claim, QueueState.DONE, "")

        await asyncio.gather(*(work(f"worker-{number}") for number in range(20)))
        assert sorted(done) == sorted({f"T-{number}" for number in range(100)})

    async def test_what_needs_a_gpu_waits_with_the_reason_until_one_is_there(
        self, machine: Machine, database: Database
    ) -> None:
        queue = machine("ada@laptop")
        await queue.put(QueuedTask("T-1", "gpu", 9))
        await queue.put(QueuedTask("T-2", "goal: a"))
        assert (await claimed(queue, "box")).task.id == "T-2"
        (waiting,) = await queue.tasks(QueueState.QUEUED)
        assert waiting.reason == "no worker has 16 GB of GPU memory; none has any"


class TestForgedRows:
    """Whoever can write to the database has no key: what they write runs nowhere, and is told of."""

    @pytest.mark.parametrize(
        ("forgery", "told"),
        [
            ("signature = ''", "it is not signed"),
            ("signature = 'ada@laptop x'", "its signature is of no allowed signer"),
            ("body = replace(encode(body, 'escape'), 'goal: a', 'goal: x')::bytea", "of no allowed signer"),
            ("id = 'T-2'", "of no allowed signer"),
            ("priority = 99", "its columns are not those that were signed"),
            ("""needs = '{"cores":0}'""", "its columns are not those that were signed"),
            ("depends_on = '{T-0}'", "its columns are not those that were signed"),
            (
                f"body = repeat('x', {MAX_BODY_BYTES + 1})::bytea",
                "it has more than 1,100,000 bytes, or columns that no worker writes",
            ),
        ],
    )
    async def test_a_changed_row_never_runs(
        self, machine: Machine, database: Database, forgery: str, told: str
    ) -> None:
        laptop, box = machine("ada@laptop"), machine("box")
        await laptop.put(QueuedTask("T-1", "goal: a"))
        await change(database, f"UPDATE agent_tasks SET {forgery}")
        assert await box.claim("box", LEASE) is None
        ((name, why),) = box.refused()
        assert await box.claim("box", LEASE) is None
        assert why.startswith("it does not count: ")
        assert why.endswith(told)
        (task,) = await laptop.tasks(QueueState.FAILED)
        assert (task.id, task.reason) == (name, why)

    async def test_a_row_of_another_project_counts_not_here(self, machine: Machine, database: Database) -> None:
        laptop = machine("ada@laptop")
        await laptop.put(QueuedTask("T-1", "goal: a"))
        await change(database, f"UPDATE agent_tasks SET queue = '{REPOSITORY}/other'")
        other = PostgresQueue(database, REPOSITORY, "other", FakeSignatures())
        assert await other.claim("box", LEASE) is None
        assert len(other.refused()) == 1
        await other.close()

    async def test_the_key_of_a_worker_puts_no_task(self, machine: Machine) -> None:
        box, den = machine("box"), machine("den")
        await box.put(QueuedTask("T-1", "goal: a"))
        told: list[tuple[str, str]] = []
        for _ in range(MOST_ATTEMPTS + 1):
            assert await den.claim("den", LEASE) is None
            told += den.refused()
        (parked,) = await box.tasks(QueueState.PARKED)
        assert (parked.exhausted, told) == (True, [("T-1", parked.reason)] * MOST_ATTEMPTS)
        assert parked.reason.startswith("it does not count for den: ")

    async def test_a_machine_that_lacks_a_key_leaves_its_tasks_to_one_that_has_it(
        self, machine: Machine, database: Database
    ) -> None:
        ada, box = machine("ada@laptop"), machine("box")
        stranger = PostgresQueue(database, REPOSITORY, "default", FakeSignatures("new"))
        await ada.put(QueuedTask("T-1", "goal: a"))
        assert await stranger.claim("new", LEASE) is None
        assert [name for name, _ in stranger.refused()] == ["T-1"]
        await stranger.close()
        await box.finish(await claimed(box), QueueState.DONE, "done", RESULT)
        await ada.put(QueuedTask("T-2", "goal: b", depends_on=("T-1",)))
        # One that knows who put it, and not who did what it depends on.
        half = PostgresQueue(database, REPOSITORY, "default", FakeSignatures("new", {"ada@laptop": PERSON_PURPOSES}))
        assert await half.claim("new", LEASE) is None
        assert [name for name, _ in half.refused()] == ["T-2"]
        await half.close()
        assert (await claimed(box)).task.id == "T-2"
        assert await ada.tasks(QueueState.FAILED) == ()

    @pytest.mark.parametrize(
        "forgery",
        [
            """result = replace(result, '"done"', '"failed"')""",
            "state = 'failed'",
            "fence = 7",
            "result_signature = ''",
        ],
    )
    async def test_a_changed_result_does_not_count(self, machine: Machine, database: Database, forgery: str) -> None:
        laptop, box = machine("ada@laptop"), machine("box")
        await laptop.put(QueuedTask("T-1", "goal: a"))
        await box.finish(await claimed(box), QueueState.DONE, "done", RESULT)
        await change(database, f"UPDATE agent_tasks SET {forgery}")
        with pytest.raises(StorageError, match="does not count"):
            await laptop.result("T-1")
        (row,) = await laptop.tasks()
        assert await laptop.end_problem(row)

    async def test_a_reason_that_nobody_signed_is_found(self, machine: Machine, database: Database) -> None:
        laptop, box = machine("ada@laptop"), machine("box")
        await laptop.put(QueuedTask("T-1", "goal: a"))
        (row,) = await laptop.tasks()
        assert await laptop.end_problem(row) == "", "it did not end"
        await box.finish(await claimed(box), QueueState.DONE, "done", RESULT)
        (row,) = await laptop.tasks()
        assert await laptop.end_problem(row) == ""
        await change(database, "UPDATE agent_tasks SET reason = 'delete everything'")
        (row,) = await laptop.tasks()
        assert "not the one that was signed" in await laptop.end_problem(row)

    async def test_a_task_does_not_follow_one_whose_end_is_forged(self, machine: Machine, database: Database) -> None:
        laptop, box = machine("ada@laptop"), machine("box")
        await laptop.put(QueuedTask("T-1", "goal: a"))
        await laptop.put(QueuedTask("T-2", "goal: b", depends_on=("T-1",)))
        await change(database, "UPDATE agent_tasks SET state = 'done' WHERE id = 'T-1'")
        await change(database, "UPDATE agent_tasks SET ready = true")
        assert await box.claim("box", LEASE) is None
        assert [name for name, _ in box.refused()] == ["T-2"]

    async def test_a_forged_job_starts_nothing(self, machine: Machine, database: Database) -> None:
        laptop, box = machine("ada@laptop"), machine("box")
        assert await box.claim("box", LEASE) is None
        await laptop.put(QueuedTask("T-1", "goal: a"))
        await change(
            database,
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args, priority) SELECT queue_name, task_name,"
            """ '{"task": "T-9"}', 99 FROM procrastinate_jobs""",
        )
        assert (await claimed(box)).task.id == "T-1"
        assert await box.claim("box", LEASE) is None


class TestBounds:
    """What is put is checked before it is signed."""

    @pytest.mark.parametrize("name", ["", "1", "a/b", "..", "x" * 65, "a\0", "ä"])
    async def test_an_id_that_is_none_is_refused(self, machine: Machine, name: str) -> None:
        with pytest.raises(UsageError):
            await machine("ada@laptop").put(QueuedTask(name, "goal: a"))

    async def test_ids_that_differ_in_case_only_are_one(self, machine: Machine) -> None:
        queue = machine("ada@laptop")
        assert await queue.put(QueuedTask("T-1", "goal: a"))
        assert not await queue.put(QueuedTask("t-1", "goal: a"))

    async def test_a_text_that_is_too_long_or_no_text_is_refused(self, machine: Machine) -> None:
        queue = machine("ada@laptop")
        for text in ("x" * MAX_BODY_BYTES, "\ud800"):
            with pytest.raises(UsageError):
                await queue.put(QueuedTask("T-1", text))

    async def test_a_nul_in_a_reason_is_kept_out_of_the_column(self, machine: Machine) -> None:
        queue = machine("ada@laptop")
        await queue.put(replace(QueuedTask("T-1", "a\0b")))
        claim = await claimed(queue)
        assert claim.task.definition == "a\0b"
        await queue.park(claim, "a\0b\ud800")
        assert [each.reason for each in await queue.tasks()] == ["a?b?"]

    async def test_a_listing_of_a_flooded_table_ends(
        self, machine: Machine, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agent_workbench.adapters.database.postgres_queue.MOST_LISTED_BYTES", 3000)
        queue = machine("ada@laptop")
        await queue.put(QueuedTask("T-1", "x"))
        await change(database, f"UPDATE agent_tasks SET body = repeat('x', {MAX_BODY_BYTES + 1})::bytea")
        assert [each.definition for each in await queue.tasks()] == [""], "what is not read does not count"
        await queue.put(QueuedTask("T-2", "x" * 2000))
        with pytest.raises(StorageError, match="more than 3,000 bytes"):
            await queue.tasks()
