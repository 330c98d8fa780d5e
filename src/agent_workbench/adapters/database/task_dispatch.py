"""Dispatch of tasks inside one transaction: to the worker that asks, or to one that waits for work."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from psycopg.sql import SQL

from agent_workbench.adapters.database import job_connector as jobs
from agent_workbench.adapters.database.connection import Connection
from agent_workbench.adapters.database.task_rows import COLUMNS, NEXT_FENCE, TaskRow, decode_needs, select
from agent_workbench.core.ports.task_queue import MOST_ATTEMPTS
from agent_workbench.core.task_routing import RoutableTask, RoutingDecision, RoutingOutcome, route
from agent_workbench.core.workers import Fleet, WorkerPresence, WorkerRecord

CHOSEN_SECONDS = 10.0
"""Time in which a chosen worker has to take its task; then it is routed again."""
MOST_NEEDS = 64
"""Different needs among the queued tasks that one look takes into account."""
MOST_BEGUN = 32
MOST_REASON_CHARS = 2000
MOST_SWEPT = 50

_NOW = SQL("coalesce(%(now)s::timestamptz, statement_timestamp())")
_OVER = SQL(
    "lease_until <= {now}"
    " AND (%(now)s::timestamptz IS NOT NULL OR pg_postmaster_start_time() <= {now} - make_interval(secs => %(grace)s))"
).format(now=_NOW)
# A forged list of lists takes no name more; it would stop the sweep of all tasks.
_LOST = SQL("(CASE WHEN coalesce(array_ndims(lost), 1) = 1 THEN lost ELSE '{}' END)")
_SWEEP = SQL(
    """\
WITH over AS (
    SELECT id AS over_id FROM agent_tasks
    WHERE queue = %(queue)s AND {over} AND state IN ('queued', 'claimed')
    ORDER BY lease_until LIMIT %(most)s FOR UPDATE SKIP LOCKED
)
UPDATE agent_tasks SET
    state = CASE WHEN state = 'claimed' AND cardinality(lost) + 1 >= %(attempts)s THEN 'parked' ELSE 'queued' END,
    reason = CASE
        WHEN state = 'queued' THEN worker || ' was chosen and did not take it'
        WHEN cardinality(lost) + 1 < %(attempts)s THEN worker || ' had it and gave no sign any more'
        ELSE %(attempts)s || ' attempts were lost, the workers gave no sign any more: '
            || array_to_string({lost} || worker, ', ') END,
    lost = CASE WHEN state = 'claimed' THEN array_remove({lost}, NULL) || worker ELSE lost END,
    worker = '', lease_until = NULL, changed_at = {now}
FROM over WHERE queue = %(queue)s AND id = over_id
RETURNING {columns}"""
).format(over=_OVER, now=_NOW, columns=COLUMNS, lost=_LOST)
# Equal needs are alike: the first tasks of each are enough, so a claim costs the same however many are queued.
_FRESH_HEADS = SQL(
    """\
WITH RECURSIVE sets AS (
    (SELECT needs FROM agent_tasks
     WHERE queue = %(queue)s AND state = 'queued' AND worker = '' AND ready AND fresh ORDER BY needs LIMIT 1)
    UNION ALL
    SELECT (SELECT t.needs FROM agent_tasks t
            WHERE t.queue = %(queue)s AND t.state = 'queued' AND t.worker = '' AND t.ready AND t.fresh
              AND t.needs > sets.needs ORDER BY t.needs LIMIT 1)
    FROM sets WHERE sets.needs IS NOT NULL
)
SELECT {columns} FROM (SELECT needs AS wanted FROM sets WHERE needs IS NOT NULL LIMIT %(most_needs)s) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM agent_tasks
    WHERE queue = %(queue)s AND state = 'queued' AND worker = '' AND ready AND fresh AND needs = wanted
    ORDER BY priority DESC, id LIMIT %(heads)s FOR UPDATE {skip}
) AS head"""
)
_BEGUN_TASKS = SQL(
    """\
SELECT {columns} FROM agent_tasks
WHERE queue = %(queue)s AND state = 'queued' AND worker = '' AND ready AND NOT fresh
  AND (session <> '' OR NOT %(begun)s)
ORDER BY priority DESC, id LIMIT %(most)s FOR UPDATE {skip}"""
)
# By whether rows that another transaction holds are waited for.
_FRESH, _BEGUN = (
    {wait: query.format(columns=COLUMNS, skip=SQL("" if wait else "SKIP LOCKED")) for wait in (False, True)}
    for query in (_FRESH_HEADS, _BEGUN_TASKS)
)
_CHOOSE = SQL(
    """\
UPDATE agent_tasks SET worker = %(worker)s, lease_until = {now} + make_interval(secs => %(seconds)s), job = %(job)s,
    routing = %(routing)s, reason = %(reason)s, changed_at = {now}
WHERE queue = %(queue)s AND id = %(task)s"""
).format(now=_NOW)
_TAKE = SQL(
    """\
UPDATE agent_tasks SET state = 'claimed', worker = %(worker)s, fence = {next}, reason = '', changed_at = {now},
    lease_until = {now} + make_interval(secs => %(seconds)s)
WHERE queue = %(queue)s AND state = 'queued' AND job = %(job)s RETURNING {columns}"""
).format(now=_NOW, next=NEXT_FENCE, columns=COLUMNS)
# The worker that asks needs no job: nobody has to be woken.
_TAKE_FREE = SQL(
    """\
WITH gone AS (DELETE FROM agent_waiting_workers WHERE queue = %(queue)s AND worker = %(worker)s)
UPDATE agent_tasks SET state = 'claimed', worker = %(worker)s, fence = {next}, reason = '', changed_at = {now},
    lease_until = {now} + make_interval(secs => %(seconds)s), routing = %(routing)s, job = NULL
WHERE queue = %(queue)s AND id = %(task)s RETURNING {columns}"""
).format(now=_NOW, next=NEXT_FENCE, columns=COLUMNS)
# A row with a longer name could not be removed by what is read of it, and would be chosen for ever.
_WAITING = SQL(
    "SELECT worker, fresh FROM agent_waiting_workers WHERE queue = %(queue)s AND until > {now}"
    " AND length(worker) <= 200 ORDER BY worker LIMIT 1000"
).format(now=_NOW)
_WAIT = SQL(
    """\
INSERT INTO agent_waiting_workers (queue, worker, fresh, until)
VALUES (%(queue)s, %(worker)s, %(fresh)s, {now} + make_interval(secs => %(seconds)s))
ON CONFLICT (queue, worker) DO UPDATE SET fresh = excluded.fresh, until = excluded.until"""
).format(now=_NOW)
_WAKE = "DELETE FROM agent_waiting_workers WHERE queue = %(queue)s AND worker = %(worker)s"
_UNCHOOSE = SQL(
    "UPDATE agent_tasks SET worker = '', lease_until = NULL, reason = ''"
    " WHERE queue = %(queue)s AND lease_until IS NOT NULL AND state = 'queued' AND worker = %(worker)s"
    " RETURNING {columns}"
).format(columns=COLUMNS)
_SAY_WHY = "UPDATE agent_tasks SET reason = %(reason)s WHERE queue = %(queue)s AND id = %(task)s"
_BUSY = "SELECT worker, count(*) FROM agent_tasks WHERE queue = %(queue)s AND lease_until IS NOT NULL GROUP BY worker"


class Request(Struct, frozen=True):
    """A worker that asks for a task: with `begun` only for one that was begun before."""

    worker: str
    lease_seconds: float
    begun: bool


class Dispatch:
    """Dispatch of the tasks of one queue in the transaction of `connection`. Each statement gets `parameters`."""

    def __init__(self, connection: Connection, queue: str, parameters: Mapping[str, object], fleet: Fleet) -> None:
        self._connection = connection
        self._parameters: dict[str, object] = dict(parameters)
        self._queue = queue
        self._fleet, self._beats_now = fleet.workers, fleet.now

    async def lock(self, *, exclusive: bool) -> None:
        """Keep others from beginning to wait for work and, with `exclusive`, from queueing, until the transaction ends.

        So no task becomes free between a worker's last look and its wait. Taken before any row is locked.
        """
        name = "pg_advisory_xact_lock" if exclusive else "pg_advisory_xact_lock_shared"
        await self._connection.execute(f"SELECT {name}(hashtextextended(%s, 0))".encode(), (f"agent {self._queue}",))

    async def sweep(self) -> bool:
        """Free tasks whose lease ran out, or whose chosen worker did not come; park those that were lost too often.

        Returns True if there were any.
        """
        parameters = {**self._parameters, "most": MOST_SWEPT, "attempts": MOST_ATTEMPTS}
        rows = await select(self._connection, _SWEEP, parameters)
        for row in rows:
            if row.job is not None:
                await jobs.end(self._connection, row.job)
        return bool(rows)

    async def take_chosen(self, request: Request) -> TaskRow | None:
        """Return the first task that was chosen for a worker, now claimed; None if there is none."""
        queues = [jobs.worker_queue(self._queue, request.worker, fresh=False)]
        if not request.begun:
            queues.append(jobs.worker_queue(self._queue, request.worker, fresh=True))
        while (job := await jobs.fetch(self._connection, queues)) is not None:
            parameters = {**self._parameters, "worker": request.worker, "seconds": request.lease_seconds, "job": job}
            for row in await select(self._connection, _TAKE, parameters):
                return row
            await jobs.end(self._connection, job)  # the task was withdrawn, or its row is gone
        return None

    async def take_free(self, request: Request, *, wait: bool) -> TaskRow | None:
        """Choose workers for the first free tasks; return the one of the worker that asks, now claimed.

        Without `wait`, rows that another transaction holds are passed over.
        """
        waiting = await self._waiting()
        waiting[request.worker] = not request.begun
        parameters = {
            **self._parameters,
            "begun": request.begun,
            "most": MOST_BEGUN,
            "most_needs": MOST_NEEDS,
            "heads": min(len(waiting), MOST_BEGUN),
        }
        free = await select(self._connection, _BEGUN[wait], parameters)
        if not request.begun:
            free += await select(self._connection, _FRESH[wait], parameters)
        if not free:
            return None
        return await self._route(sorted(free, key=lambda row: (-row.priority, row.id)), waiting, request)

    async def offer(self, rows: Sequence[TaskRow], *, free: str = "") -> None:
        """Choose among the workers that wait for work, and the one that is `free` now, for tasks that became free."""
        if rows:
            waiting = await self._waiting() | ({free: True} if free else {})
            if waiting:
                await self._route(rows, waiting)

    async def wait(self, request: Request, seconds: float) -> None:
        """Note that a worker found nothing and waits to be woken, for some seconds."""
        parameters = {**self._parameters, "worker": request.worker, "fresh": not request.begun, "seconds": seconds}
        await self._connection.execute(_WAIT, parameters)

    async def leave(self, worker: str) -> None:
        """Forget that a worker waits, and route again what was chosen for it."""
        parameters = {**self._parameters, "worker": worker}
        await self._connection.execute(_WAKE, parameters)
        rows = await select(self._connection, _UNCHOOSE, parameters)
        for row in rows:
            if row.job is not None:
                await jobs.end(self._connection, row.job)
        await self.offer(rows)

    async def _waiting(self) -> dict[str, bool]:
        found = await self._connection.execute(_WAITING, self._parameters)
        return {str(worker): bool(fresh) for worker, fresh in await found.fetchall()}

    async def _route(
        self, rows: Sequence[TaskRow], waiting: dict[str, bool], request: Request | None = None
    ) -> TaskRow | None:
        """Choose among waiting workers, each for one task at most; return the one of the worker that asks."""
        fleet = await self._records(waiting)
        left, taken = dict(waiting), None
        for row in rows:
            able = {name for name, fresh in left.items() if fresh or row.begun}
            if not left:
                break
            decision = _decide(row, [_as_free(each, free=each.name in able) for each in fleet], self._beats_now)
            if decision.worker:
                del left[decision.worker]
                if request is not None and decision.worker == request.worker:
                    taken = await self._take_free(row, decision, request)
                else:
                    await self._choose(row, decision)
            elif row.reason != (reason := "; ".join(decision.reasons)[:MOST_REASON_CHARS]):
                await self._connection.execute(_SAY_WHY, {**self._parameters, "task": row.id, "reason": reason})
        return taken

    async def _take_free(self, row: TaskRow, decision: RoutingDecision, request: Request) -> TaskRow | None:
        parameters = {
            **self._parameters,
            "task": row.id,
            "worker": request.worker,
            "seconds": request.lease_seconds,
            "routing": msgspec.json.encode(decision).decode(),
        }
        return next(iter(await select(self._connection, _TAKE_FREE, parameters)), None)

    async def _records(self, waiting: dict[str, bool]) -> list[WorkerRecord]:
        """Return the registered workers and those that wait, with the tasks that each has now."""
        now = self._beats_now
        known = {each.name: each for each in self._fleet}
        for name in waiting:
            # Whoever asks, or waits, is there; without a record nothing is known of it.
            known[name] = replace(known.get(name, WorkerRecord(name, now, now)), last_beat=now)
        found = await self._connection.execute(_BUSY, self._parameters)
        jobs_of = {str(worker): int(str(count)) for worker, count in await found.fetchall()}
        return [replace(each, jobs=jobs_of.get(each.name, 0)) for each in known.values()]

    async def _choose(self, row: TaskRow, decision: RoutingDecision) -> None:
        await self._connection.execute(_WAKE, {**self._parameters, "worker": decision.worker})
        job_queue = jobs.worker_queue(self._queue, decision.worker, fresh=not row.begun)
        job = await jobs.defer(self._connection, job_queue, self._queue, row.id, row.priority)
        parameters = {
            **self._parameters,
            "worker": decision.worker,
            "seconds": CHOSEN_SECONDS,
            "job": job,
            "routing": msgspec.json.encode(decision).decode(),
            "reason": f"{decision.worker} was chosen",
            "task": row.id,
        }
        await self._connection.execute(_CHOOSE, parameters)


def _decide(row: TaskRow, fleet: Sequence[WorkerRecord], now: str) -> RoutingDecision:
    """Route one task: to a worker that did not lose it before, unless none that is there fits."""
    needs = decode_needs(row.needs)
    if needs is None:
        return RoutingDecision(row.id, RoutingOutcome.UNMET, reasons=("what it needs cannot be read",))
    there = fleet if not row.lost else [each for each in fleet if each.presence(now) is not WorkerPresence.OFFLINE]
    (decision,) = route((RoutableTask(row.id, needs, row.lost),), there, now)
    if decision.outcome is RoutingOutcome.EXHAUSTED:
        (decision,) = route((RoutableTask(row.id, needs),), there, now)
    return decision


def _as_free(worker: WorkerRecord, *, free: bool) -> WorkerRecord:
    """Return a worker as the routing sees it: what it says itself about its free jobs counts."""
    most = max(1, worker.most_jobs)
    return replace(worker, most_jobs=most, jobs=min(worker.jobs, most - 1) if free else most)
