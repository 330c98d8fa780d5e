"""Connections to a real database: what is told of its errors, and that nothing stays open."""

import asyncio

import psycopg
import pytest

from agent_workbench.adapters.database import connection as connection_module
from agent_workbench.adapters.database.connection import Database
from agent_workbench.core.errors import ConfigError, DatabaseDownError, StorageError
from tests.postgres import PostgresServer


async def test_a_transaction_is_kept_at_the_end_and_undone_after_an_error(postgres_url: str) -> None:
    async with Database(postgres_url) as database:
        async with database.connection() as connection:
            await connection.execute("CREATE TABLE words (word text)")
            await connection.execute("INSERT INTO words VALUES ('kept')")
        with pytest.raises(StorageError, match="nowhere"):
            await insert_and_fail(database)
        async with database.connection() as connection:
            assert await (await connection.execute("SELECT word FROM words")).fetchall() == [("kept",)]


async def insert_and_fail(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("INSERT INTO words VALUES ('undone')")
        await connection.execute("SELECT * FROM nowhere")


async def test_a_refused_statement_tells_what_the_database_said(postgres_url: str) -> None:
    async with Database(postgres_url) as database:
        with pytest.raises(StorageError, match='refused: relation "nowhere" does not exist') as refused:
            async with database.connection() as connection:
                await connection.execute("SELECT * FROM nowhere")
    assert not isinstance(refused.value, DatabaseDownError)


async def test_what_a_hostile_database_says_is_bounded_and_inert(postgres_url: str) -> None:
    async with Database(postgres_url) as database:
        for said in ("repeat('x', 20000000)", "E'a\\x1b]52;c;YQ==\\x07b\\nc'"):
            with pytest.raises(StorageError) as refused:
                async with database.connection() as connection:
                    await connection.execute(f"DO $$ BEGIN RAISE EXCEPTION '%', {said}; END $$".encode())
            assert len(str(refused.value)) < 500
            assert str(refused.value).isprintable()


@pytest.mark.parametrize("url", ["postgresql://ada:hun@s3cr3t@h/x", "postgresql://ada:hun/s3cr3t@h/x"])
def test_a_password_that_is_not_escaped_is_no_host_that_is_shown(url: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as refused:
        Database(url)
    assert "s3cr3t" not in f"{refused.value} {refused.value.advice}"
    assert "%40" in refused.value.advice


@pytest.mark.parametrize(
    "url", ["postgresql://ada:s3cr3t@127.0.0.1:1/agent", "postgresql://ada:s3cr3t@/x?host=/nowhere"]
)
async def test_a_database_that_is_down_is_told_without_its_password(url: str) -> None:
    async with Database(url) as database:
        with pytest.raises(DatabaseDownError) as down:
            async with database.connection():
                pass
    assert "s3cr3t" not in f"{down.value} {down.value.advice} {database!r}"
    assert "agent database check" in down.value.advice


def test_what_is_no_address_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError) as refused:
        Database("postgresql://ada:s3cr3t@host:port:5432/%zz")
    assert "s3cr3t" not in f"{refused.value} {refused.value.advice}"


async def test_work_goes_on_after_the_server_was_restarted(
    own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "PAUSE_SECONDS", 0.0)
    async with Database(own_postgres.url()) as database:
        async with database.connection() as connection:
            await connection.execute("SELECT 1")
        await asyncio.to_thread(own_postgres.stop)
        with pytest.raises(DatabaseDownError):
            async with database.connection() as connection:
                await connection.execute("SELECT 1")
        await asyncio.to_thread(own_postgres.start)
        async with database.connection() as connection:
            assert await (await connection.execute("SELECT 2")).fetchone() == (2,)


async def test_a_listener_hears_what_another_connection_says(postgres_url: str) -> None:
    async with Database(postgres_url) as database, database.listener("news") as listening:
        async with database.connection() as connection:
            await connection.execute("NOTIFY news, 'hello'")
        heard = [notify.payload async for notify in listening.notifies(timeout=10, stop_after=1)]
    assert heard == ["hello"]


async def test_nothing_stays_connected(postgres_url: str) -> None:
    async with Database(postgres_url) as database, database.connection() as connection:
        await connection.execute("SELECT 1")

    def others() -> int:
        with psycopg.connect(postgres_url) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
            ).fetchone()
            assert row is not None
            return int(row[0])

    assert await asyncio.to_thread(others) == 0
