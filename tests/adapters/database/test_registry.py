"""Registered workers in a real database: heartbeats, orders, forged rows."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.migrations import migrate, migrations
from agent_workbench.adapters.database.registry import DatabaseRegistry
from agent_workbench.core.errors import LockedError, UsageError
from agent_workbench.core.workers import (
    DispatchPause,
    Gpu,
    MachineResources,
    ServedModel,
    WorkerPresence,
    WorkerRecord,
)

BOX = WorkerRecord(
    "box",
    instance="1",
    tags=("lab",),
    jobs=1,
    most_jobs=4,
    models=(ServedModel("qwen", "near", 900.0, 42.0),),
    resources=MachineResources((0.5, 0.4, 0.3), 8, 7.5, 32.0, 20.0, (Gpu("card", 24.0, 20.0),)),
)


@pytest.fixture
async def database(postgres_url: str) -> AsyncGenerator[Database]:
    """A database with the schema."""
    async with Database(postgres_url) as opened:
        await migrate(opened, [each for each in await asyncio.to_thread(migrations) if each.name == "workers"])
        yield opened


def registry(database: Database) -> DatabaseRegistry:
    """The registry of another process."""
    return DatabaseRegistry(database, "repo", "default")


async def execute(database: Database, statement: str) -> None:
    """Change rows as somebody else would."""
    async with database.connection() as connection:
        await connection.execute(statement.encode())


async def presences(database: Database) -> dict[str, WorkerPresence]:
    """The state of each worker."""
    fleet = await registry(database).fleet()
    return {each.name: each.presence(fleet.now) for each in fleet.workers}


async def test_a_heartbeat_tells_everything_and_the_database_tells_the_time(database: Database) -> None:
    registered = await registry(database).beat(BOX)
    assert registered is not None
    assert registered == replace(BOX, since=registered.since, last_beat=registered.last_beat)
    fleet = await registry(database).fleet()
    assert fleet.workers == (registered,)
    assert registered.since <= registered.last_beat <= fleet.now
    assert await DatabaseRegistry(database, "repo", "other").fleet() != fleet
    assert (await DatabaseRegistry(database, "other", "default").fleet()).workers == ()


async def test_without_a_heartbeat_a_worker_is_offline_and_online_after_the_next(database: Database) -> None:
    box = registry(database)
    await box.beat(BOX)
    await execute(
        database, "UPDATE agent_workers SET since = since - interval '91 s', last_beat = since - interval '91 s'"
    )
    assert await presences(database) == {"box": WorkerPresence.OFFLINE}
    await box.beat(BOX)
    assert await presences(database) == {"box": WorkerPresence.ONLINE}
    await box.end(BOX)
    assert await presences(database) == {"box": WorkerPresence.OFFLINE}


async def test_the_newer_of_two_processes_has_the_name(database: Database) -> None:
    older, newer = registry(database), registry(database)
    await older.beat(BOX)
    took = await newer.beat(replace(BOX, instance="2"))
    assert took is not None
    assert took.instance == "2"
    assert await older.beat(BOX) is None
    assert await older.beat(BOX) is None
    await older.end(BOX)
    assert await newer.beat(replace(BOX, instance="2")) is not None
    assert await presences(database) == {"box": WorkerPresence.ONLINE}


async def test_draining_is_kept_over_heartbeats_and_restarts_until_it_is_undone(database: Database) -> None:
    box = registry(database)
    await box.beat(BOX)
    await registry(database).drain("box", draining=True)
    assert await presences(database) == {"box": WorkerPresence.DRAINING}
    for each in (BOX, replace(BOX, instance="2")):
        ordered = await registry(database).beat(each)
        assert ordered is not None
        assert ordered.draining
    await registry(database).drain("box", draining=False)
    assert await presences(database) == {"box": WorkerPresence.ONLINE}
    with pytest.raises(UsageError, match="no worker 'bx' is registered") as unknown:
        await registry(database).drain("bx", draining=True)
    assert unknown.value.advice == "registered: box"


async def test_only_an_offline_worker_can_be_removed(database: Database) -> None:
    box = registry(database)
    await box.beat(BOX)
    with pytest.raises(LockedError, match="worker box is online"):
        await registry(database).remove("box")
    await box.end(BOX)
    await registry(database).remove("box")
    assert await presences(database) == {}
    with pytest.raises(UsageError, match="no worker 'box'"):
        await registry(database).remove("box")
    assert await box.beat(BOX) is not None


async def test_a_worker_that_never_came_back_is_forgotten_after_a_week(database: Database) -> None:
    await registry(database).beat(replace(BOX, name="pod-1"))
    await registry(database).beat(replace(BOX, name="pod-2"))
    await registry(database).drain("pod-2", draining=True)
    await execute(
        database, "UPDATE agent_workers SET since = since - interval '8 d', last_beat = since - interval '8 d'"
    )
    await registry(database).beat(BOX)
    assert set(await presences(database)) == {"box", "pod-2"}


@pytest.mark.parametrize(
    "changes",
    [
        "about = 'no json'",
        "about = '{\"most_jobs\": -1}'",
        "about = '{\"most_jobs\": 1e400}'",
        'about = \'{"resources": {"cores_available": "NaN"}}\'',
        """about = '{"x":' || repeat('[', 60000)""",
    ],
)
async def test_a_forged_row_that_no_worker_writes_hides_no_other(database: Database, changes: str) -> None:
    for name in ("box", "forged"):
        await registry(database).beat(replace(BOX, name=name))
    await execute(database, f"UPDATE agent_workers SET {changes} WHERE name = 'forged'")
    assert await presences(database) == {"box": WorkerPresence.ONLINE}


@pytest.mark.parametrize(
    "changes",
    [
        "last_beat = 'infinity'",
        "last_beat = '20000-01-01'",
        "last_beat = '4000-01-01 BC'",
        "last_beat = now() + interval '1 h'",
    ],
)
async def test_a_worker_with_a_forged_time_is_offline(database: Database, changes: str) -> None:
    for name in ("box", "forged"):
        await registry(database).beat(replace(BOX, name=name))
    await execute(database, f"UPDATE agent_workers SET {changes} WHERE name = 'forged'")
    assert await presences(database) == {"box": WorkerPresence.ONLINE, "forged": WorkerPresence.OFFLINE}


@pytest.mark.parametrize("values", ["'infinity', 1, 2", "now(), 'NaN', 2", "now(), 1, 'Infinity'"])
async def test_a_forged_pause_that_no_worker_writes_is_none(database: Database, values: str) -> None:
    await registry(database).beat(BOX)
    pause = f"INSERT INTO agent_dispatch_pauses SELECT repository, project, {values} FROM agent_workers"
    await execute(database, pause)
    assert (await registry(database).fleet()).pause is None


async def test_a_pause_is_kept_with_its_beginning_until_it_ends(database: Database) -> None:
    assert (await registry(database).fleet()).pause is None
    since = (await registry(database).fleet()).now
    await registry(database).set_pause(DispatchPause(since, 5.0, 20.0))
    await registry(database).set_pause(DispatchPause(since, 7.0, 20.0))
    assert (await registry(database).fleet()).pause == DispatchPause(since, 7.0, 20.0)
    await registry(database).set_pause(None)
    assert (await registry(database).fleet()).pause is None
