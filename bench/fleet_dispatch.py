"""The queue in the database alone: from put to start beside bare Procrastinate, and dispatch under load."""

import asyncio
import time
from collections.abc import Sequence

import psycopg
from msgspec.structs import replace
from procrastinate import App, PsycopgConnector

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.postgres_queue import PostgresQueue
from agent_workbench.adapters.database.registry import DatabaseRegistry
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim
from agent_workbench.core.workers import MachineResources, WorkerRecord
from bench.figures import Figure, milliseconds, ratio
from tests.fakes.signatures import FakeSignatures
from tests.postgres import PostgresServer, running_server

REPOSITORY, PROJECT = "bench", "dispatch"
LEASE_SECONDS = 60.0
DEFINITION = "goal: Write it\nedits: [{path: src/a.txt, content: a}]\n"
PUTTERS = 16
FEW, MANY = 100, 10_000


def measure(
    tasks: int = 60, dispatched: int = 400, queued: int = MANY, workers: Sequence[int] = (1, 10, 50)
) -> list[Figure]:
    """Return the figures; `dispatched` tasks are taken of `queued` ones, by as many simulated workers as each says."""
    with running_server() as server:
        ours = asyncio.run(_put_to_start(server.create_migrated(), tasks))
        theirs = asyncio.run(_bare_put_to_start(server.create(), tasks))
        figures = [
            milliseconds("from put to start, a worker waits", ours),
            milliseconds("the same with bare Procrastinate", theirs),
            ratio("put to start, beside bare Procrastinate", ours, theirs, "1.5 times"),
        ]
        fewer = [(FEW + dispatched, workers[0])] if FEW + dispatched < queued else []
        for waiting, number in (*fewer, *((queued, each) for each in workers)):
            figures += _load(server, waiting, number, min(dispatched, waiting))
    return figures


def _queue(database: Database) -> PostgresQueue:
    return PostgresQueue(database, REPOSITORY, PROJECT, FakeSignatures())


async def _put_to_start(url: str, tasks: int) -> list[float]:
    """Return the seconds from the beginning of each put until a worker that waits has the task."""
    seconds = []
    async with Database(url) as here, Database(url) as there:
        person, worker = _queue(here), _queue(there)
        await DatabaseRegistry(there, REPOSITORY, PROJECT).beat(_record("one"))
        for number in range(tasks):
            assert await worker.claim("one", LEASE_SECONDS) is None
            worker.news.clear()
            waiting = asyncio.create_task(_next_claim(worker, "one", now=False))
            await asyncio.sleep(0)
            began = time.perf_counter()
            await person.put(_task(number))
            claim = await waiting
            seconds.append(time.perf_counter() - began)
            await worker.finish(claim, QueueState.DONE, "")
        await worker.close()
        await person.close()
    return seconds


async def _next_claim(queue: PostgresQueue, worker: str, *, now: bool = True) -> TaskClaim:
    """Return the next claim; unless `now`, wait for news first."""
    while True:
        if now and (claim := await queue.claim(worker, LEASE_SECONDS)) is not None:
            return claim
        await queue.news.wait()
        queue.news.clear()
        now = True


async def _bare_put_to_start(url: str, tasks: int) -> list[float]:
    """Return the seconds from the beginning of each defer until a worker of Procrastinate runs the task."""
    app = App(connector=PsycopgConnector(conninfo=url))
    started = asyncio.Event()

    @app.task(name="work")
    async def work() -> None:
        started.set()

    seconds = []
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        running = asyncio.create_task(app.run_worker_async(install_signal_handlers=False, wait=True))
        await asyncio.sleep(0.5)  # it listens then
        for _ in range(tasks):
            started.clear()
            began = time.perf_counter()
            await work.defer_async()
            await started.wait()
            seconds.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)  # until it has recorded the end
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return seconds


def _load(server: PostgresServer, queued: int, workers: int, dispatched: int) -> list[Figure]:
    """Return what dispatch costs with so many tasks in the queue and workers that take them."""
    url = server.create_migrated()
    asyncio.run(_fill(url, queued))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    before, statements = server.cpu_seconds(), _transactions(url)
    took = asyncio.run(_drain(url, workers, dispatched))
    cpu, statements = server.cpu_seconds() - before, _transactions(url) - statements
    server.drop(url)
    place = f"{queued:,} queued, {workers} workers"
    return [
        Figure(f"dispatches a second: {place}", dispatched / took, "tasks"),
        Figure(f"database's processor time a dispatch: {place}", cpu / dispatched * 1000, "ms"),
        Figure(f"transactions a dispatch: {place}", statements / dispatched, ""),
    ]


async def _fill(url: str, queued: int) -> None:
    async with Database(url) as database:
        queue, numbers = _queue(database), iter(range(queued))

        async def put() -> None:
            for number in numbers:
                await queue.put(_task(number))

        await asyncio.gather(*(put() for _ in range(PUTTERS)))
        await queue.close()


async def _drain(url: str, workers: int, dispatched: int) -> float:
    """Return the seconds in which simulated workers take and end tasks, each with connections of its own."""
    left = iter(range(dispatched))

    async def work(name: str) -> None:
        async with Database(url) as database:
            queue = _queue(database)
            await DatabaseRegistry(database, REPOSITORY, PROJECT).beat(_record(name))
            for _ in left:
                claim = await _next_claim(queue, name)
                await queue.renew(claim, LEASE_SECONDS)
                await queue.finish(claim, QueueState.DONE, "committed")
            await queue.close()

    began = time.perf_counter()
    await asyncio.gather(*(work(f"worker-{number:02}") for number in range(workers)))
    return time.perf_counter() - began


def _task(number: int) -> QueuedTask:
    return QueuedTask(f"task-{number:05}", DEFINITION, priority=number % 3, origin=TaskOrigin.DATABASE)


def _record(name: str) -> WorkerRecord:
    resources = MachineResources(cores=8, cores_available=6.0, memory_total_gb=32, memory_available_gb=16)
    return replace(WorkerRecord(name, instance=name), resources=resources)


def _transactions(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        row = connection.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])
