"""The schema is applied once, whole, and by one version."""

import asyncio

import pytest

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.migrations import Migration, check_schema, migrate, migrations
from agent_workbench.core.errors import StorageError

FIRST = Migration(1, "first", "CREATE TABLE first (a integer);\nCREATE TABLE second (b integer);")
NEXT = Migration(2, "next", "CREATE TABLE third (c integer)")


async def test_what_is_missing_is_applied_once(postgres_url: str) -> None:
    async with Database(postgres_url) as database:
        with pytest.raises(StorageError, match="lacks first, next"):
            await check_schema(database, (FIRST, NEXT))
        assert await migrate(database, (FIRST,)) == ("first",)
        assert await migrate(database, (FIRST, NEXT)) == ("next",)
        assert await migrate(database, (FIRST, NEXT)) == ()
        await check_schema(database, (FIRST, NEXT))


async def test_of_two_at_once_one_applies(postgres_url: str) -> None:
    async with Database(postgres_url) as one, Database(postgres_url) as two:
        applied = await asyncio.gather(migrate(one, (FIRST,)), migrate(two, (FIRST,)))
    assert sorted(applied) == [(), ("first",)]


async def test_a_failure_leaves_nothing(postgres_url: str) -> None:
    broken = Migration(2, "broken", "CREATE TABLE third (c integer); SELECT nothing FROM nowhere;")
    async with Database(postgres_url) as database:
        with pytest.raises(StorageError, match="nowhere"):
            await migrate(database, (FIRST, broken))
        assert await migrate(database, (FIRST, NEXT)) == ("first", "next")


async def test_another_versions_schema_is_refused(postgres_url: str) -> None:
    changed = Migration(1, "first", "CREATE TABLE first (a text)")
    async with Database(postgres_url) as database:
        await migrate(database, (FIRST, NEXT))
        for wanted in ((FIRST,), (changed, NEXT)):
            with pytest.raises(StorageError, match="another version"):
                await check_schema(database, wanted)
            with pytest.raises(StorageError, match="another version"):
                await migrate(database, wanted)


async def test_the_schema_of_this_version_can_be_applied(postgres_url: str) -> None:
    wanted = await asyncio.to_thread(migrations)
    async with Database(postgres_url) as database:
        await migrate(database, wanted)
        await check_schema(database, wanted)
