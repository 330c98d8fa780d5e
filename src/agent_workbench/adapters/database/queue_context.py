"""Database, name and clock of one queue, which the parts of the queue share."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from psycopg.sql import SQL

from agent_workbench.adapters.database import job_connector as jobs
from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.adapters.database.registry import read_workers
from agent_workbench.adapters.database.task_dispatch import Dispatch
from agent_workbench.core.errors import UsageError
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.task_queue import QueueState, TaskClaim
from agent_workbench.core.workers import Fleet

FLEET_SECONDS = 2.0
GRACE_SECONDS = 45.0
"""Time after a start of the server in which no lease runs out: while it was away nobody could renew."""
_STATE = SQL("SELECT state FROM agent_tasks WHERE queue = %(queue)s AND id = %(task)s")


class QueueContext:
    """Database, name and clock of a queue. Leases run on the server's clock; tests set another one (`clock`)."""

    def __init__(self, database: Database, repository: str, project: str, clock: Clock | None = None) -> None:
        self.database = database
        self.queue = f"{repository}/{project}"
        self.path = f"the queue {project} at {database.place}"
        self._registered = (repository, project)
        self._clock = clock
        self._fleet: Fleet | None = None
        self._fleet_read = float("-inf")

    def parameters(self, task: str = "") -> dict[str, object]:
        """Return what each statement gets: the queue, the time of a test (None), and the task."""
        return {"queue": self.queue, "now": self._moment(), "grace": GRACE_SECONDS, "task": task}

    def of_claim(self, claim: TaskClaim) -> dict[str, object]:
        """Return what a statement about a claim gets."""
        return {**self.parameters(claim.task.id), "worker": claim.worker, "fence": claim.fence}

    @asynccontextmanager
    async def dispatch(self) -> AsyncGenerator[tuple[Connection, Dispatch]]:
        """Yield a connection with an open transaction, and the dispatch in it."""
        async with self.database.connection() as connection:
            yield connection, Dispatch(connection, self.queue, self.parameters(), await self._workers(connection))

    async def state_of(self, connection: Connection, task: str) -> QueueState:
        """Return the state of a task; raise `UsageError` if there is no such task."""
        row = await (await connection.execute(_STATE, self.parameters(task))).fetchone()
        if row is None:
            raise UsageError(f"there is no task {task!r} in {self.path}", advice="`agent worker status` shows them")
        return QueueState(str(row[0]))

    def _moment(self) -> datetime | None:
        if self._clock is None:
            return None
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._clock.monotonic_seconds())

    async def _workers(self, connection: Connection) -> Fleet:
        """Return the registered workers, as they were at most a moment ago: they tell news every half minute."""
        now = asyncio.get_running_loop().time()
        if self._fleet is None or now >= self._fleet_read + FLEET_SECONDS:
            self._fleet, self._fleet_read = await read_workers(connection, *self._registered), now
        return self._fleet


async def end_job(connection: Connection, job: object) -> None:
    """Remove the job of a row, if it has one."""
    if isinstance(job, int):
        await jobs.end(connection, job)


def stored(text: str) -> str:
    """Return a text as a column can hold it."""
    return text.replace("\0", "?").encode("utf-8", "replace").decode()
