"""Procrastinate's job manager inside of a transaction that is open already."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job
from procrastinate.manager import JobManager
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from agent_workbench.adapters.database.connection import Connection

TASK_NAME = "agent_task"
# Its own `finish_job` raises for a job that is gone, which would undo the whole transaction.
_END = """\
SELECT procrastinate_finish_job_v1(id, 'succeeded', true) FROM procrastinate_jobs
WHERE id = %s AND status IN ('todo', 'doing')"""


class TransactionConnector(BaseAsyncConnector):
    """Runs the queries of a `JobManager` on one connection; its transaction decides whether they count."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute_query_async(self, query: str, **arguments: object) -> None:
        await self._connection.execute(query.encode(), _adapted(arguments))

    async def execute_query_one_async(self, query: str, **arguments: object) -> dict[str, Any]:
        (row,) = await self.execute_query_all_async(query, **arguments)
        return row

    async def execute_query_all_async(self, query: str, **arguments: object) -> list[dict[str, Any]]:
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query.encode(), _adapted(arguments))
            return await cursor.fetchall()


def _adapted(arguments: Mapping[str, object]) -> dict[str, object]:
    return {
        name: [_adapted_job(each) for each in value] if isinstance(value, list) else value
        for name, value in arguments.items()
    }


def _adapted_job(value: object) -> object:
    """Return a `JobToDefer` with its arguments as JSON, anything else as it is."""
    if not isinstance(value, tuple):
        return value
    return tuple(Jsonb(each) if isinstance(each, dict) else each for each in value)


def worker_queue(queue: str, worker: str, *, fresh: bool) -> str:
    """Return the name of a worker's queue of jobs: one for new tasks, one for those that were begun before."""
    digest = sha256(f"{queue}\0{worker}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return f"agent:{digest}:{'fresh' if fresh else 'begun'}"  # a channel's name has at most 63 bytes


def worker_queues(queue: str, worker: str) -> list[str]:
    """Return the names of all queues of jobs of a worker."""
    return [worker_queue(queue, worker, fresh=each) for each in (False, True)]


def channel(job_queue: str) -> str:
    """Return the channel on which Procrastinate tells of new jobs in a queue."""
    return f"procrastinate_queue_v1#{job_queue}"


async def defer(connection: Connection, job_queue: str, queue: str, task: str, priority: int) -> int:
    """Put a job for a task into a queue of jobs and return its number. Of one task only one job runs at a time."""
    job = Job(
        queue=job_queue,
        priority=priority,
        lock=f"{queue}\n{task}",
        queueing_lock=None,
        task_name=TASK_NAME,
        task_kwargs={"queue": queue, "task": task},
    )
    deferred = await JobManager(TransactionConnector(connection)).defer_job_async(job)
    return deferred.id or 0


async def fetch(connection: Connection, job_queues: list[str]) -> int | None:
    """Start the first job of some queues and return its number, None without one."""
    # Leases are in `agent_tasks`: Procrastinate's own workers and their heartbeats are not used.
    nobody: Any = None
    job = await JobManager(TransactionConnector(connection)).fetch_job(job_queues, nobody)
    return None if job is None else job.id


async def end(connection: Connection, job: int) -> None:
    """Remove a job that waits or runs; one that is gone is no error."""
    await connection.execute(_END, (job,))
