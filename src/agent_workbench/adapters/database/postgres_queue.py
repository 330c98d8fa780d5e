"""Port `TaskQueue` on the shared database: claims, tasks that do not count, and news by LISTEN and NOTIFY.

The table `agent_tasks` says what is queued, who has it and how it ended; every change checks the claim's fence. A
Procrastinate job takes a task to the worker that was chosen for it, and wakes that worker.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import msgspec
from msgspec import Struct
from psycopg.sql import SQL, Identifier

from agent_workbench.adapters.database import job_connector as jobs
from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.migrations import check_schema, migrations
from agent_workbench.adapters.database.queue_context import QueueContext, end_job, stored
from agent_workbench.adapters.database.task_claims import TaskClaims, TaskEnds
from agent_workbench.adapters.database.task_dispatch import Request
from agent_workbench.adapters.database.task_rows import (
    COLUMNS,
    MAX_BODY_BYTES,
    NEXT_FENCE,
    TaskBody,
    TaskRow,
    TaskSigner,
    encode_body,
    encode_needs,
    select,
)
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import LockedError, SigningError, StorageError, UsageError
from agent_workbench.core.ids import NO_SESSION, SessionId, task_id
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.shared_state import Signatures
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim
from agent_workbench.core.task_estimates import Needs
from agent_workbench.core.task_result import TaskResult, encode_result, no_task
from agent_workbench.core.task_routing import RoutingDecision

MOST_LISTED_BYTES = 64_000_000
"""Bytes of tasks that one listing reads; more than 10,000 tasks of the usual size."""
MOST_REFUSED = 100
"""Rows that do not count which one claim puts aside."""
_NOW = SQL("coalesce(%(now)s::timestamptz, statement_timestamp())")
_PUT = SQL(
    "INSERT INTO agent_tasks (queue, id, body, signature, priority, needs, depends_on, ready) VALUES"
    " (%(queue)s, %(task)s, %(body)s, %(signature)s, %(priority)s, %(needs)s, %(depends_on)s,"
    "  NOT EXISTS (SELECT 1 FROM unnest(%(depends_on)s::text[]) AS other WHERE NOT EXISTS ("
    "   SELECT 1 FROM agent_tasks WHERE queue = %(queue)s AND id = other AND state = 'done')))"
    " ON CONFLICT DO NOTHING RETURNING {columns}"
).format(columns=COLUMNS)
_RESUME = SQL(
    "UPDATE agent_tasks SET state = 'queued', reason = '', worker = '', lost = '{{}}', changed_at = {now}"
    " WHERE queue = %(queue)s AND id = %(task)s AND state = 'parked' RETURNING {columns}"
).format(now=_NOW, columns=COLUMNS)
_WITHDRAW = SQL(
    "UPDATE agent_tasks SET state = 'withdrawn', reason = %(reason)s, worker = '', lease_until = NULL,"
    " fence = {next}, changed_at = {now}"
    " WHERE queue = %(queue)s AND id = %(task)s AND state IN ('queued', 'claimed', 'parked') RETURNING job"
).format(now=_NOW, next=NEXT_FENCE)
# The server counts, so that a flooded table does not come here; a body that is too long is not read.
_SIZE = SQL("CASE WHEN octet_length(body) <= {most} THEN octet_length(body) ELSE 0 END + 1000").format(
    most=MAX_BODY_BYTES
)
_LIST_OF = SQL(
    "SELECT {columns} FROM ("
    "  SELECT *, sum({size}) OVER (ORDER BY priority DESC, id) AS size FROM agent_tasks"
    "  WHERE queue = %(queue)s AND {wanted}) AS found WHERE size <= %(most)s ORDER BY priority DESC, id"
)
_SIZE_OF = SQL("SELECT sum({size}) > %(most)s FROM agent_tasks WHERE queue = %(queue)s AND {wanted}")
_ALL, _IN_STATES = SQL("true"), SQL("state = ANY(%(states)s)")
_WITHDREW = SQL(
    "SELECT 1 FROM agent_tasks WHERE queue = %(queue)s AND id = %(task)s AND session = %(session)s"
    " AND state = 'withdrawn'"
)


class PostgresQueue:
    """Implements `core.ports.task_queue.TaskQueue`. `close` frees the claims of this object.

    `clock` is set by tests: leases run on the server's clock without it. `complete` adds what
    a definition says: the task's id, its order and what it needs.
    """

    def __init__(
        self,
        database: Database,
        repository: str,
        project: str,
        signatures: Signatures,
        *,
        complete: Callable[[QueuedTask], tuple[QueuedTask, Needs]] | None = None,
        poll_seconds: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        self._context = QueueContext(database, repository, project, clock)
        self._signer = TaskSigner(self._context.queue, signatures)
        self._claims = TaskClaims(self._context)
        self._ends = TaskEnds(self._context, self._signer)
        self._complete = complete
        self._waits_seconds = 2 * poll_seconds + 5
        self._asked: set[str] = set()
        self._refused = RefusedTasks()
        self._wake_up = WakeUp(database, poll_seconds)

    @property
    def path(self) -> str:
        """Name of the queue for the user."""
        return self._context.path

    @property
    def news(self) -> asyncio.Event:
        """Set when a task may be free for this worker; whoever waits for it clears it."""
        return self._wake_up.news

    def mark(self) -> int:
        """Return what changes with each task that was chosen for this worker; the database is not asked."""
        return self._wake_up.count

    async def exists(self) -> bool:
        """Return True; raise `StorageError` if the database lacks its tables."""
        await check_schema(self._context.database, await asyncio.to_thread(migrations))
        return True

    async def put(self, task: QueuedTask) -> bool:
        task, needs = (task, Needs()) if self._complete is None else self._complete(task)
        task_id(task.id)
        body = encode_body(TaskBody(task.definition, task.priority, needs, task.depends_on))
        parameters = {
            **self._context.parameters(task.id),
            "body": body,
            "signature": await self._signer.sign_task(task.id, body),
            "priority": task.priority,
            "needs": encode_needs(needs),
            "depends_on": list(task.depends_on),
        }
        async with self._context.dispatch() as (connection, dispatch):
            # One that it depends on may end just now.
            await dispatch.lock(exclusive=bool(task.depends_on))
            rows = await select(connection, _PUT, parameters)
            await dispatch.offer([row for row in rows if not task.depends_on])
        return bool(rows)

    async def claim(self, worker: str, lease_seconds: float, *, begun: bool = False) -> TaskClaim | None:
        await self._refused.end(self.finish, self._claims.pass_on)
        request = Request(worker, lease_seconds, begun)
        for _ in range(MOST_REFUSED):
            row = await self._take(request)
            if row is None:
                return None
            claim = TaskClaim(row.task, worker, row.fence, _decision(row))
            self._claims.add(claim)
            try:
                problem, elsewhere = await self._problem(row)
            except BaseException:
                await self._claims.free([claim])
                raise
            if not problem:
                return claim
            self._refused.add(claim, problem, elsewhere=elsewhere)
            self._wake_up.tell()  # the next claim ends it
        return None

    async def renew(self, claim: TaskClaim, lease_seconds: float, session: SessionId = NO_SESSION) -> None:
        await self._claims.renew(claim, lease_seconds, session)

    async def park(self, claim: TaskClaim, reason: str) -> None:
        await self._claims.end(claim, QueueState.PARKED, reason)

    async def resume(self, task: str) -> QueueState:
        async with self._context.dispatch() as (connection, dispatch):
            await dispatch.lock(exclusive=False)
            rows = await select(connection, _RESUME, self._context.parameters(task))
            await dispatch.offer(rows)
            return QueueState.QUEUED if rows else await self._context.state_of(connection, task)

    async def finish(self, claim: TaskClaim, state: QueueState, reason: str, result: TaskResult | None = None) -> None:
        if state not in {QueueState.DONE, QueueState.FAILED}:
            raise UsageError(f"a task does not end as {state}")
        document = "" if result is None else encode_result(result)
        signature = await self._signer.sign_result(claim.task.id, claim.fence, state, document)
        await self._claims.end(claim, state, reason, document, signature)

    async def withdraw(self, task: str, reason: str) -> bool:
        parameters = {**self._context.parameters(task), "reason": stored(reason)}
        async with self._context.database.connection() as connection:
            found = await (await connection.execute(_WITHDRAW, parameters)).fetchone()
            if found is None:
                await self._context.state_of(connection, task)
                return False
            await end_job(connection, found[0])
        return True

    async def tasks(self, *states: QueueState) -> tuple[QueuedTask, ...]:
        wanted = _IN_STATES if states else _ALL
        parameters = {**self._context.parameters(), "states": [str(each) for each in states], "most": MOST_LISTED_BYTES}
        async with self._context.database.connection() as connection:
            size = await connection.execute(_SIZE_OF.format(size=_SIZE, wanted=wanted), parameters)
            if await size.fetchone() == (True,):
                raise StorageError(f"{self.path} has more than {MOST_LISTED_BYTES:,} bytes of tasks")
            rows = await select(connection, _LIST_OF.format(size=_SIZE, wanted=wanted, columns=COLUMNS), parameters)
        return tuple(row.task for row in rows)

    async def result(self, task: str) -> TaskResult | None:
        """Return the result of an ended task, None if it has none; raise `StorageError` if it does not count."""
        return await self._ends.result(task)

    async def uncounted(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        """Return the number of tasks, and the newest ones that do not count, each with the reason."""
        return await self._ends.uncounted()

    async def withdrew(self, task: str, session: SessionId) -> bool:
        """Return True if the task that the session works on was withdrawn."""
        parameters = {**self._context.parameters(task), "session": session}
        async with self._context.database.connection() as connection:
            return await (await connection.execute(_WITHDREW, parameters)).fetchone() is not None

    async def end_problem(self, task: QueuedTask) -> str:
        """Return why state or reason of an ended task is not what a known worker signed; empty if it is."""
        return await self._ends.end_problem(task)

    def refused(self) -> tuple[tuple[str, str], ...]:
        """Return the tasks that do not count, each with the reason: those since the last call."""
        return self._refused.take()

    async def close(self) -> None:
        """Free the claims of this object and end the wait for news."""
        await self._wake_up.close()
        with suppress(StorageError, SigningError):  # then the leases run out
            await self._refused.end(self.finish, self._claims.pass_on)
            if self._asked:
                await self._claims.free_all(self._asked)

    async def _problem(self, row: TaskRow) -> tuple[str, bool]:
        """Return why a claimed task may not run (empty: it may), and if it may on a machine that knows other keys."""
        if problem := await self._signer.task_problem(row):
            return problem, await self._signer.task_key_is_unknown(row)
        named = row.task if self._complete is None else self._complete(row.task)[0]
        if named.id != row.id:
            return f"its text sets the id {named.id}, under which it would be done once more", False
        for other in row.depends_on:
            problem, elsewhere = await self._ends.problem(other)
            if problem:
                return problem, elsewhere
        return "", False

    async def _take(self, request: Request) -> TaskRow | None:
        """Claim a task; a worker that finds none waits to be woken."""
        self._asked.add(request.worker)
        self._wake_up.listen([jobs.channel(each) for each in jobs.worker_queues(self._context.queue, request.worker)])
        async with self._context.dispatch() as (_, dispatch):
            row = await dispatch.take_chosen(request) or await dispatch.take_free(request, wait=False)
            if row is None and request.begun:
                if await dispatch.sweep():
                    row = await dispatch.take_free(request, wait=False)
                if row is None:
                    await dispatch.wait(request, self._waits_seconds)
        if row is not None or request.begun:
            return row
        # Nothing can be queued between this look and the wait.
        async with self._context.dispatch() as (_, dispatch):
            await dispatch.lock(exclusive=True)
            await dispatch.sweep()
            row = await dispatch.take_chosen(request) or await dispatch.take_free(request, wait=True)
            if row is None:
                await dispatch.wait(request, self._waits_seconds)
        return row


def _decision(row: TaskRow) -> RoutingDecision | None:
    try:
        return msgspec.json.decode(row.routing, type=RoutingDecision) if row.routing else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


class _Refusal(Struct, frozen=True):
    """A claim of a task that may not run, and why; `elsewhere`: it may on a machine that knows other keys."""

    claim: TaskClaim
    reason: str
    elsewhere: bool


class Finish(Protocol):
    """Ends a claim with a result."""

    def __call__(self, claim: TaskClaim, state: QueueState, reason: str, result: TaskResult) -> Awaitable[None]:
        """See `TaskQueue.finish`."""


class PassOn(Protocol):
    """Gives a claim back, so that another worker gets the task."""

    def __call__(self, claim: TaskClaim, reason: str) -> Awaitable[None]:
        """Count an attempt, and give the reason."""


class RefusedTasks:
    """The refused tasks of one process. None ends before `take` has reported it."""

    def __init__(self) -> None:
        self._new: list[_Refusal] = []
        self._reported: list[_Refusal] = []

    def add(self, claim: TaskClaim, problem: str, *, elsewhere: bool) -> None:
        """Note a claimed task that may not run, and why."""
        here = f" for {claim.worker}" if elsewhere else ""
        self._new.append(_Refusal(claim, f"it does not count{here}: {problem}", elsewhere))

    def take(self) -> tuple[tuple[str, str], ...]:
        """Return the ids of those since the last call, each with the reason."""
        found, self._new = self._new, []
        self._reported += found
        return tuple((each.claim.task.id, each.reason) for each in found)

    async def end(self, finish: Finish, pass_on: PassOn) -> None:
        """End the reported ones as failed, or pass them on if they may count elsewhere."""
        while self._reported:
            refusal = self._reported[-1]
            claim, reason = refusal.claim, refusal.reason
            with suppress(LockedError):
                if refusal.elsewhere:
                    await pass_on(claim, reason)
                else:
                    result = no_task(claim.task.id, reason, "", TaskOrigin.DATABASE)
                    await finish(claim, QueueState.FAILED, reason, result)
            self._reported.pop()


class WakeUp:
    """Listens in the background, again after an outage; `news` is set and `count` grows with each notification."""

    def __init__(self, database: Database, poll_seconds: float) -> None:
        self._database = database
        self._poll_seconds = poll_seconds
        self._listening: asyncio.Task[None] | None = None
        self.news = asyncio.Event()
        self.count = 0

    def listen(self, channels: list[str]) -> None:
        """Begin to listen; further calls change nothing."""
        if self._listening is None:
            self._listening = in_background(self._listen(channels), expected=(Exception,))

    async def close(self) -> None:
        """Stop listening."""
        task, self._listening = self._listening, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _listen(self, channels: list[str]) -> None:
        first, *others = channels
        while True:
            with suppress(StorageError):
                async with self._database.listener(first) as connection:
                    for each in others:
                        await connection.execute(SQL("LISTEN {}").format(Identifier(each)))
                    self.tell()  # what came before is not told again
                    async for _ in connection.notifies():
                        self.tell()
            await asyncio.sleep(self._poll_seconds)

    def tell(self) -> None:
        """Say that a look is worth it."""
        self.count += 1
        self.news.set()
