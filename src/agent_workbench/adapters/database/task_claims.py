"""Changes by the holder of a claim, checked in the statement that changes the row; and ends of tasks, as signed.

`task_dispatch` takes a task.
"""

from collections.abc import Iterable

from psycopg.sql import SQL

from agent_workbench.adapters.database.connection import Connection
from agent_workbench.adapters.database.queue_context import QueueContext, end_job, stored
from agent_workbench.adapters.database.task_rows import COLUMNS, MAX_REASON_CHARS, RESULT_COLUMNS, TaskSigner, select
from agent_workbench.core.errors import LockedError, StorageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.task_queue import MOST_ATTEMPTS, QueuedTask, QueueState, TaskClaim
from agent_workbench.core.task_result import TaskResult, decode_result

_NOW = SQL("coalesce(%(now)s::timestamptz, statement_timestamp())")
# A lease holds for a while after a restart of the server: while it was away nobody could renew.
_HELD = SQL(
    "queue = %(queue)s AND id = %(task)s AND state = 'claimed' AND worker = %(worker)s AND fence = %(fence)s"
    " AND greatest(lease_until, CASE WHEN %(now)s::timestamptz IS NULL"
    "  THEN pg_postmaster_start_time() + make_interval(secs => %(grace)s) END) > {now}"
).format(now=_NOW)
_RENEW = SQL(
    "UPDATE agent_tasks SET lease_until = {now} + make_interval(secs => %(seconds)s),"
    " session = CASE WHEN %(session)s = '' THEN session ELSE %(session)s END WHERE {held} RETURNING id"
).format(now=_NOW, held=_HELD)
_END = SQL(
    "UPDATE agent_tasks SET state = %(state)s, reason = %(reason)s, result = %(result)s,"
    " result_signature = %(signature)s, lease_until = NULL, changed_at = {now} WHERE {held} RETURNING job"
).format(now=_NOW, held=_HELD)
_ENDED = SQL(
    "SELECT 1 FROM agent_tasks WHERE queue = %(queue)s AND id = %(task)s AND state = %(state)s AND fence = %(fence)s"
    " AND worker = %(worker)s"
)
_PASS_ON = SQL(
    "UPDATE agent_tasks SET"
    " state = CASE WHEN cardinality(lost) + 1 >= %(attempts)s THEN 'parked' ELSE 'queued' END,"
    " lost = lost || worker, reason = %(reason)s, worker = '', lease_until = NULL, changed_at = {now}"
    " WHERE {held} RETURNING {columns}"
).format(now=_NOW, held=_HELD, columns=COLUMNS)
_FREE = SQL(
    "UPDATE agent_tasks SET state = 'queued', worker = '', lease_until = NULL WHERE {held} RETURNING {columns}"
).format(held=_HELD, columns=COLUMNS)
# Of two ends at once the second one waits here, and sees what the first one did.
_LOCK_DEPENDENTS = SQL(
    "SELECT id FROM agent_tasks WHERE queue = %(queue)s AND NOT ready AND depends_on @> %(done)s ORDER BY id FOR UPDATE"
)
_READY = SQL(
    "UPDATE agent_tasks SET ready = true WHERE queue = %(queue)s AND NOT ready AND depends_on @> %(done)s"
    " AND NOT EXISTS (SELECT 1 FROM unnest(depends_on) AS other WHERE NOT EXISTS ("
    "  SELECT 1 FROM agent_tasks o WHERE o.queue = %(queue)s AND o.id = other AND o.state = 'done'))"
    " RETURNING {columns}"
).format(columns=COLUMNS)

MOST_CHECKED = 200
"""Newest tasks whose signatures one check judges."""
_RESULT = SQL(
    "SELECT {columns} FROM agent_tasks WHERE queue = %(queue)s AND id = %(task)s AND state IN ('done', 'failed')"
).format(columns=RESULT_COLUMNS)


_NEWEST = SQL(
    "SELECT {columns} FROM agent_tasks WHERE queue = %(queue)s ORDER BY changed_at DESC LIMIT %(most)s"
).format(columns=COLUMNS)
_COUNT = SQL("SELECT count(*) FROM agent_tasks WHERE queue = %(queue)s")


class TaskClaims:
    """The claims of one process."""

    def __init__(self, context: QueueContext) -> None:
        self._context = context
        self._held: dict[tuple[str, int], TaskClaim] = {}

    def add(self, claim: TaskClaim) -> None:
        """Note a claim that `free` gives back."""
        self._held[claim.task.id, claim.fence] = claim

    async def renew(self, claim: TaskClaim, lease_seconds: float, session: SessionId) -> None:
        """Extend a lease and note the session; raise `LockedError`."""
        parameters = {**self._context.of_claim(claim), "seconds": lease_seconds, "session": session}
        async with self._context.database.connection() as connection:
            if await (await connection.execute(_RENEW, parameters)).fetchone() is None:
                raise await self._lost(connection, claim)

    async def end(
        self, claim: TaskClaim, state: QueueState, reason: str, document: str = "", signature: str = ""
    ) -> None:
        """End a claim; to end it again in the same way changes nothing: the first answer may have been lost."""
        parameters = {
            **self._context.of_claim(claim),
            "state": state,
            "reason": stored(reason),
            "result": document,
            "signature": signature,
        }
        done = {**self._context.parameters(), "done": [claim.task.id]}
        async with self._context.dispatch() as (connection, dispatch):
            if state is QueueState.DONE:
                await dispatch.lock(exclusive=False)
                await connection.execute(_LOCK_DEPENDENTS, done)
            found = await (await connection.execute(_END, parameters)).fetchone()
            if found is None:
                if await (await connection.execute(_ENDED, parameters)).fetchone() is None:
                    raise await self._lost(connection, claim)
            else:
                await end_job(connection, found[0])
                if state is QueueState.DONE:
                    await dispatch.offer(await select(connection, _READY, done), free=claim.worker)
        self._held.pop((claim.task.id, claim.fence), None)

    async def pass_on(self, claim: TaskClaim, reason: str) -> None:
        """Give a task back that this worker may not do; another one gets it, if one that fits is there.

        It counts as an attempt: after the last one the task is parked with the reason.
        """
        parameters = {**self._context.of_claim(claim), "attempts": MOST_ATTEMPTS, "reason": stored(reason)}
        async with self._context.dispatch() as (connection, dispatch):
            await dispatch.lock(exclusive=False)
            rows = await select(connection, _PASS_ON, parameters)
            for row in rows:
                await end_job(connection, row.job)
            await dispatch.offer([row for row in rows if row.state is QueueState.QUEUED])
        self._held.pop((claim.task.id, claim.fence), None)

    async def free(self, claims: Iterable[TaskClaim]) -> None:
        """Give claims back, so that others get the tasks at once."""
        async with self._context.dispatch() as (connection, dispatch):
            await dispatch.lock(exclusive=False)
            for claim in claims:
                rows = await select(connection, _FREE, self._context.of_claim(claim))
                for row in rows:
                    await end_job(connection, row.job)
                await dispatch.offer(rows)
                self._held.pop((claim.task.id, claim.fence), None)

    async def free_all(self, workers: set[str]) -> None:
        """Give back all claims, and what was chosen for these workers."""
        await self.free(tuple(self._held.values()))
        async with self._context.dispatch() as (_, dispatch):
            await dispatch.lock(exclusive=False)
            for worker in workers:
                await dispatch.leave(worker)

    async def _lost(self, connection: Connection, claim: TaskClaim) -> LockedError:
        query = SQL("SELECT left(worker, 200) FROM agent_tasks WHERE queue = %(queue)s AND id = %(task)s")
        found = await (await connection.execute(query, self._context.of_claim(claim))).fetchone()
        holder = str(found[0]) if found else ""
        return LockedError(f"{claim.task.id} is not {claim.worker}'s any more", holder=holder)


class TaskEnds:
    """Reads the ends of tasks. One that is not signed by a known worker does not count."""

    def __init__(self, context: QueueContext, signer: TaskSigner) -> None:
        self._context = context
        self._signer = signer

    async def result(self, task: str) -> TaskResult | None:
        """Return the result of an ended task, None if it has none; raise `StorageError` if it does not count."""
        document, problem, _ = await self._ended(task)
        if problem:
            raise StorageError(f"the result of {task} in {self._context.path} does not count: {problem}")
        return decode_result(document, f"the result of {task}") if document else None

    async def problem(self, task: str) -> tuple[str, bool]:
        """Return why the end of a task does not count (empty: it does, or there is none), and if it may elsewhere."""
        _, problem, signature = await self._ended(task)
        if not problem:
            return "", False
        return f"the end of {task} does not count: {problem}", await self._signer.result_key_is_unknown(signature)

    async def end_problem(self, task: QueuedTask) -> str:
        """Return why state or reason of an ended task does not count; empty if both do, or if it did not end."""
        if task.state not in {QueueState.DONE, QueueState.FAILED}:
            return ""
        document, problem, _ = await self._ended(task.id)
        if problem or not document:
            return problem
        try:
            signed = decode_result(document, "its result")
        except StorageError as error:
            return str(error)
        reason = stored(signed.reason)[:MAX_REASON_CHARS]
        return "" if task.reason == reason else "its reason is not the one that was signed"

    async def uncounted(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        """Return the number of tasks, and those of the newest that do not count, each with the reason."""
        parameters = {**self._context.parameters(), "most": MOST_CHECKED}
        async with self._context.database.connection() as connection:
            row = await (await connection.execute(_COUNT, parameters)).fetchone()
            rows = await select(connection, _NEWEST, parameters)
        found = []
        for each in rows:
            if each.state in {QueueState.DONE, QueueState.FAILED}:
                _, problem, _ = await self._ended(each.id)
            else:
                problem = await self._signer.task_problem(each)
            if problem:
                found.append((each.id, problem))
        return (int(str(row[0])) if row is not None else 0), tuple(found)

    async def _ended(self, task: str) -> tuple[str, str, str]:
        """Return the result of an ended task (empty: none), why its end does not count, and its signature."""
        async with self._context.database.connection() as connection:
            row = await (await connection.execute(_RESULT, self._context.parameters(task))).fetchone()
        if row is None:
            return "", "", ""
        fence, state, document, signature = row
        problem = await self._signer.result_problem(
            task, int(str(fence)), QueueState(str(state)), str(document), str(signature)
        )
        return str(document), problem, str(signature)
