"""Registered workers of a queue in the shared database. Times are those of the database's clock."""

from math import isfinite

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.core.errors import LockedError, UsageError
from agent_workbench.core.workers import (
    Count,
    DispatchPause,
    Fleet,
    MachineResources,
    ServedModel,
    WorkerPresence,
    WorkerRecord,
)

_BEAT = """\
INSERT INTO agent_workers (repository, project, name, instance, about)
VALUES (%(repository)s, %(project)s, %(name)s, %(instance)s, %(about)s)
ON CONFLICT (repository, project, name) DO UPDATE
SET about = excluded.about, last_beat = clock_timestamp(), ended = false, instance = excluded.instance,
    since = CASE WHEN agent_workers.instance = excluded.instance THEN agent_workers.since ELSE clock_timestamp() END
WHERE agent_workers.instance = excluded.instance OR %(first)s
RETURNING name, instance, agent_time_text(since), agent_time_text(last_beat), draining, ended, about"""
_READ = """\
SELECT name, instance, agent_time_text(since), agent_time_text(last_beat), draining, ended, about
FROM agent_workers WHERE repository = %s AND project = %s ORDER BY name LIMIT 1000"""
# A worker that never came back; an order to drain is kept.
_FORGET = """\
DELETE FROM agent_workers WHERE repository = %s AND project = %s AND NOT draining
AND last_beat < clock_timestamp() - interval '7 days'"""


class WorkerAbout(Struct, frozen=True):
    """Description of a worker in its heartbeat, as it is stored."""

    tags: tuple[str, ...] = ()
    jobs: Count = 0
    most_jobs: Count = 1
    models: tuple[ServedModel, ...] = ()
    resources: MachineResources = msgspec.field(default_factory=MachineResources)


class DatabaseRegistry:
    """`core.ports.shared_state.WorkerRegistry` for the queue of a project of a repository."""

    def __init__(self, database: Database, repository: str, project: str) -> None:
        self._database = database
        self._queue = (repository, project)
        self._registered = ""

    async def beat(self, worker: WorkerRecord) -> WorkerRecord | None:
        repository, project = self._queue
        first = self._registered != worker.instance
        values = {
            "repository": repository,
            "project": project,
            "name": worker.name,
            "instance": worker.instance,
            "about": _about(worker),
            "first": first,
        }
        async with self._database.connection() as connection:
            if first:
                await connection.execute(_FORGET, self._queue)
            row = await (await connection.execute(_BEAT, values)).fetchone()
        self._registered = worker.instance
        return _record(row) if row is not None else None

    async def end(self, worker: WorkerRecord) -> None:
        async with self._database.connection() as connection:
            await connection.execute(
                "UPDATE agent_workers SET ended = true, about = %s "
                "WHERE repository = %s AND project = %s AND name = %s AND instance = %s",
                (_about(worker), *self._queue, worker.name, worker.instance),
            )

    async def drain(self, name: str, *, draining: bool) -> None:
        async with self._database.connection() as connection:
            changed = await connection.execute(
                "UPDATE agent_workers SET draining = %s WHERE repository = %s AND project = %s AND name = %s",
                (draining, *self._queue, name),
            )
            if not changed.rowcount:
                raise _unknown(name, await read_workers(connection, *self._queue))

    async def remove(self, name: str) -> None:
        async with self._database.connection() as connection:
            await connection.execute(
                "SELECT 1 FROM agent_workers WHERE repository = %s AND project = %s AND name = %s FOR UPDATE",
                (*self._queue, name),
            )
            fleet = await read_workers(connection, *self._queue)
            found = next((each for each in fleet.workers if each.name == name), None)
            if found is None:
                raise _unknown(name, fleet)
            if (presence := found.presence(fleet.now)) is not WorkerPresence.OFFLINE:
                advice = f"end its process first; `agent worker drain {name}` keeps new tasks from it"
                raise LockedError(f"worker {name} is {presence}", advice=advice)
            await connection.execute(
                "DELETE FROM agent_workers WHERE repository = %s AND project = %s AND name = %s", (*self._queue, name)
            )

    async def fleet(self) -> Fleet:
        async with self._database.connection() as connection:
            fleet = await read_workers(connection, *self._queue)
            row = await (
                await connection.execute(
                    "SELECT agent_time_text(since), percent, least FROM agent_dispatch_pauses "
                    "WHERE repository = %s AND project = %s",
                    self._queue,
                )
            ).fetchone()
        return fleet if row is None else replace(fleet, pause=_pause(row))

    async def set_pause(self, pause: DispatchPause | None) -> None:
        async with self._database.connection() as connection:
            if pause is None:
                await connection.execute(
                    "DELETE FROM agent_dispatch_pauses WHERE repository = %s AND project = %s", self._queue
                )
                return
            await connection.execute(
                "INSERT INTO agent_dispatch_pauses VALUES (%s, %s, %s, %s, %s) ON CONFLICT (repository, project) "
                "DO UPDATE SET percent = excluded.percent, least = excluded.least",
                (*self._queue, pause.since, pause.percent, pause.least),
            )


async def read_workers(connection: Connection, repository: str, project: str) -> Fleet:
    """Return the registered workers of a queue within a transaction; rows that no worker writes are passed over."""
    rows = await (await connection.execute(_READ, (repository, project))).fetchall()
    now = await (await connection.execute("SELECT agent_time_text(clock_timestamp())")).fetchone()
    found = (_record(row) for row in rows)
    return Fleet(tuple(each for each in found if each is not None), str(now[0]) if now else "")


def _about(worker: WorkerRecord) -> str:
    about = WorkerAbout(worker.tags, worker.jobs, worker.most_jobs, worker.models, worker.resources)
    return msgspec.json.encode(about).decode()


def _record(row: tuple[object, ...]) -> WorkerRecord | None:
    """Return the worker of a row, None if it is no worker's."""
    name, instance, since, last_beat, draining, ended, text = row
    try:
        about = msgspec.json.decode(str(text), type=WorkerAbout)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return WorkerRecord(
        str(name),
        str(since),
        str(last_beat),
        str(instance),
        about.tags,
        bool(draining),
        bool(ended),
        about.jobs,
        about.most_jobs,
        about.models,
        about.resources,
    )


def _pause(row: tuple[object, ...]) -> DispatchPause | None:
    """Return the pause of a row, None if no worker wrote it."""
    since, percent, least = row
    share, wanted = float(str(percent)), float(str(least))
    return DispatchPause(str(since), share, wanted) if since and isfinite(share) and isfinite(wanted) else None


def _unknown(name: str, fleet: Fleet) -> UsageError:
    known = ", ".join(each.name for each in fleet.workers[:20]) or "none"
    return UsageError(f"no worker {name!r} is registered", advice=f"registered: {known}")
