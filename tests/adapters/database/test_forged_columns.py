"""Columns of a forged row that no worker writes: the row does not count, and the tasks beside it are done."""

from collections.abc import AsyncIterator

import pytest

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.postgres_queue import PostgresQueue
from agent_workbench.core.ports.task_queue import QueuedTask, TaskClaim
from tests.fakes.signatures import FakeSignatures

_LOST = "state = 'claimed', worker = 'box', lease_until = now() - interval '1 day'"
FORGERIES = (
    "depends_on = '{NULL}'",
    "depends_on = '{{a,b},{c,d}}'",
    "depends_on = array_fill('x'::text, ARRAY[100001])",
    "depends_on = ARRAY[repeat('x', 2000000)]",
    "lost = '{NULL}'",
    "lost = ARRAY[repeat('x', 2000000)]",
    "lost = '{{a},{b}}'",
    f"lost = '{{NULL}}', {_LOST}",
    f"lost = '{{{{a}},{{b}}}}', {_LOST}",
    "fence = 9223372036854775807",
    "needs = repeat('[', 9000)",
    "routing = repeat('[', 20000)",
    "session = E'\\x1b]52;c;aa\\x07'",
)


@pytest.fixture
async def queue(migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresQueue]:
    monkeypatch.setattr("agent_workbench.adapters.database.queue_context.GRACE_SECONDS", 0.0)
    async with Database(migrated_url) as database:
        opened = PostgresQueue(database, "4b825dc", "default", FakeSignatures(), poll_seconds=0.2)
        yield opened
        await opened.close()


@pytest.mark.slow(quick=4)
@pytest.mark.parametrize("forgery", FORGERIES)
async def test_one_row_keeps_nobody_from_the_others(queue: PostgresQueue, migrated_url: str, forgery: str) -> None:
    for name in ("T-1", "T-2"):
        await queue.put(QueuedTask(name, f"goal: {name}"))
    async with Database(migrated_url) as database, database.connection() as connection:
        await connection.execute(f"UPDATE agent_tasks SET {forgery} WHERE id = 'T-1'".encode())
    claimed = [claim.task.id for _ in range(3) if (claim := await _claim(queue)) is not None]
    assert "T-2" in claimed
    assert {each.id for each in await queue.tasks()} == {"T-1", "T-2"}


async def test_a_worker_that_does_not_exist_is_chosen_once_at_most(queue: PostgresQueue, migrated_url: str) -> None:
    await queue.put(QueuedTask("T-1", "goal: a"))
    async with Database(migrated_url) as database, database.connection() as connection:
        await connection.execute(
            "INSERT INTO agent_waiting_workers SELECT queue, repeat('a', 300), true, 'infinity' FROM agent_tasks"
        )
    claim = await queue.claim("box", 30.0)
    assert claim is not None


@pytest.mark.parametrize("forgery", FORGERIES[:4])
async def test_a_row_with_such_a_column_does_not_count(queue: PostgresQueue, migrated_url: str, forgery: str) -> None:
    await queue.put(QueuedTask("T-1", "goal: a"))
    async with Database(migrated_url) as database, database.connection() as connection:
        await connection.execute(f"UPDATE agent_tasks SET {forgery}".encode())
    assert await queue.claim("box", 30.0) is None
    assert [name for name, _ in queue.refused()] == ["T-1"]


async def _claim(queue: PostgresQueue) -> TaskClaim | None:
    claim = await queue.claim("box", 30.0)
    queue.refused()
    return claim
