"""Workers that are killed or frozen, cut connections, and a server that restarts: each task ends once."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.migrations import migrate, migrations
from agent_workbench.adapters.database.postgres_queue import PostgresQueue
from agent_workbench.core.errors import DatabaseDownError
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim
from tests.fakes.signatures import FakeSignatures
from tests.postgres import PostgresServer

REPOSITORY = "4b825dc"
LEASE = 30.0
ROOT = Path(__file__).parents[3]
Worker = subprocess.Popen[str]
# Takes tasks until none is left; each effect is a line of the file, written while the claim holds.
WORKER = """
import asyncio, sys
from pathlib import Path
from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database import queue_context
from agent_workbench.adapters.database.postgres_queue import PostgresQueue
from agent_workbench.core.errors import LockedError
from agent_workbench.core.ports.task_queue import QueueState
from tests.fakes.signatures import FakeSignatures

queue_context.GRACE_SECONDS = 0.0
url, name, lease, folder = sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])

async def main():
    async with Database(url) as database:
        queue = PostgresQueue(database, "4b825dc", "default", FakeSignatures())
        while (claim := await queue.claim(name, lease)) is not None:
            print("claimed", claim.task.id, flush=True)
            if (folder / f"{name}-waits").exists():
                sys.stdin.readline()
            try:
                await queue.finish(claim, QueueState.DONE, name)
            except LockedError:
                print("lost", claim.task.id, flush=True)
        await queue.close()

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def without_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server count as one that runs for long."""
    monkeypatch.setattr("agent_workbench.adapters.database.queue_context.GRACE_SECONDS", 0.0)


@pytest.fixture
async def queue(migrated_url: str) -> AsyncIterator[PostgresQueue]:
    async with Database(migrated_url) as database:
        opened = PostgresQueue(database, REPOSITORY, "default", FakeSignatures(), poll_seconds=0.2)
        yield opened
        await opened.close()


@pytest.fixture
def start(migrated_url: str, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Starts a worker in a process of its own; one that `waits` keeps its claim until it reads a line."""
    running: list[Worker] = []

    def start_one(name: str, lease: float = LEASE, *, waits: bool = False) -> Worker:
        if waits:
            (tmp_path / f"{name}-waits").touch()
        arguments = [sys.executable, "-c", WORKER, migrated_url, name, str(lease), str(tmp_path)]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(arguments, cwd=ROOT, stdin=pipe, stdout=pipe, text=True))
        return running[-1]

    yield start_one
    for process in running:
        process.kill()
        process.communicate(timeout=30)


async def said(worker: Worker) -> str:
    """Return the next line that a worker prints."""
    assert worker.stdout is not None
    return (await asyncio.to_thread(worker.stdout.readline)).strip()


async def claimed(queue: PostgresQueue, worker: str, seconds: float = 20.0) -> TaskClaim:
    """Return a claim as soon as there is one."""
    async with asyncio.timeout(seconds):
        while (claim := await queue.claim(worker, LEASE)) is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(queue.news.wait(), 0.05)
    return claim


async def test_the_task_of_a_killed_worker_is_done_by_another_one(
    queue: PostgresQueue, start: Callable[..., Worker]
) -> None:
    for number in range(6):
        await queue.put(QueuedTask(f"T-{number}", "goal: a"))
    dead = start("dead", 0.5, waits=True)
    assert await said(dead) == "claimed T-0"
    dead.send_signal(signal.SIGKILL)
    dead.wait(30)
    other = start("other", 0.5)
    assert [await said(other) for _ in range(2)] == ["claimed T-1", "claimed T-2"]
    other.kill()
    other.wait(30)
    while not all(each.state is QueueState.DONE for each in await queue.tasks()):
        claim = await claimed(queue, "third")
        await queue.finish(claim, QueueState.DONE, "third")
    ends = {each.id: (each.reason, each.lost) for each in await queue.tasks()}
    assert ends["T-0"] == ("third", ("dead",))
    assert ends["T-1"] == ("other", ())


async def test_a_frozen_worker_that_wakes_up_changes_nothing(
    queue: PostgresQueue, start: Callable[..., Worker]
) -> None:
    await queue.put(QueuedTask("T-0", "goal: a"))
    frozen = start("frozen", 0.5, waits=True)
    assert await said(frozen) == "claimed T-0"
    os.kill(frozen.pid, signal.SIGSTOP)
    claim = await claimed(queue, "other")
    await queue.finish(claim, QueueState.DONE, "other")
    os.kill(frozen.pid, signal.SIGCONT)
    assert frozen.stdin is not None
    frozen.stdin.write("\n")
    frozen.stdin.flush()
    assert await said(frozen) == "lost T-0"
    assert [(each.state, each.reason) for each in await queue.tasks()] == [(QueueState.DONE, "other")]


async def test_a_cut_connection_costs_nothing(queue: PostgresQueue, migrated_url: str) -> None:
    await queue.put(QueuedTask("T-0", "goal: a"))
    claim = await claimed(queue, "box")
    before = queue.mark()
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        connection.execute(f"{others} AND pid <> pg_backend_pid()".encode())
    await queue.renew(claim, LEASE)
    await queue.finish(claim, QueueState.DONE, "")
    # It listens again: a task that is put wakes it.
    assert await queue.claim("box", LEASE) is None
    async with asyncio.timeout(60):
        while queue.mark() == before:
            await queue.news.wait()
            queue.news.clear()
    before = queue.mark()
    await queue.put(QueuedTask("T-1", "goal: a"))
    async with asyncio.timeout(60):
        while queue.mark() == before:
            await queue.news.wait()
            queue.news.clear()
    assert (await claimed(queue, "box")).task.id == "T-1"


@pytest.mark.slow
async def test_a_claim_outlives_a_restart_of_the_server_although_its_lease_ran_out(
    own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.adapters.database.queue_context.GRACE_SECONDS", 45.0)
    url = own_postgres.create()
    async with Database(url) as database:
        await migrate(database, await asyncio.to_thread(migrations))
        queue = PostgresQueue(database, REPOSITORY, "default", FakeSignatures(), poll_seconds=0.2)
        await queue.put(QueuedTask("T-0", "goal: a"))
        claim = await queue.claim("box", 0.01)
        assert claim is not None
        await asyncio.to_thread(own_postgres.stop)
        with pytest.raises(DatabaseDownError):
            await queue.finish(claim, QueueState.DONE, "")
        await asyncio.to_thread(own_postgres.start)
        async with asyncio.timeout(30):
            while True:
                with suppress(DatabaseDownError):
                    assert await queue.claim("other", LEASE) is None
                    break
        await queue.finish(claim, QueueState.DONE, "done")
        assert [(each.state, each.reason) for each in await queue.tasks()] == [(QueueState.DONE, "done")]
        await queue.close()
