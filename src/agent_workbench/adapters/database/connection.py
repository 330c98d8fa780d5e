"""Connections to the shared database, the facts of its server, and the meaning of its errors."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from time import perf_counter
from typing import Self

import psycopg
from msgspec import Struct
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agent_workbench.core.errors import ConfigError, DatabaseDownError, StorageError
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.user_dirs import state_dir

logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # `DatabaseDownError` says it, once and in place
CONNECT_SECONDS = 5.0
"""Longest wait for a connection."""
STATEMENT_SECONDS = 30.0
"""Longest time of one statement, also of one that waits for a lock."""
MOST_CONNECTIONS = 8
PAUSE_SECONDS = 1.0
"""Time after a refused connection in which none is tried: who asks for several things waits once."""
MOST_SAID_CHARS = 300
"""Characters of an error of the server that are repeated."""
APPLICATION = "agent-workbench"
_PARAMETERS: dict[str, str | int] = {
    "connect_timeout": int(CONNECT_SECONDS),
    "application_name": APPLICATION,
    "options": f"-c statement_timeout={STATEMENT_SECONDS:.0f}s -c idle_in_transaction_session_timeout=60s"
    " -c TimeZone=UTC",
    # A peer that vanished is noticed within about 20 s.
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}

_NO_SCHEMA = frozenset({"42P01", "42703", "42883"})
"""States of an error about a table, column or function that is not there."""

_MOST_REASON_CHARS = 300
_DOWN = "`agent database check` says why; workers and open sessions try again"

Connection = psycopg.AsyncConnection[tuple[object, ...]]


class Database:
    """Pool of connections to the database at `url`; opened by the first `connection`, closed at the end of its loop.

    The url may hold a password: no error text of this class has it, and neither has its representation.
    """

    def __init__(self, url: str) -> None:
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._end: AsyncGenerator[None] | None = None
        self._opening = asyncio.Lock()
        self._refused = asyncio.Event()
        self._paused_until = 0.0
        self.place = _place(url)
        self._conninfo = make_conninfo(url, **_PARAMETERS)

    def __repr__(self) -> str:
        return f"Database({self.place})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        """Yield a connection with an open transaction: it is committed at the end, rolled back after an error.

        Raises `DatabaseDownError` if the database cannot be reached or the connection was lost, `StorageError` for
        anything else that it refuses, `TrustError` in a command of the agent that does not own the state folder.
        """
        pool = await self._opened()
        try:
            connection = await self._connected(pool)
            try:
                async with connection.transaction():
                    yield connection
            finally:
                await pool.putconn(connection)
        except (psycopg.Error, PoolTimeout, OSError) as error:
            raise self.explained(error) from error

    @asynccontextmanager
    async def listener(self, channel: str) -> AsyncGenerator[Connection]:
        """Yield a connection of its own, in autocommit, that listens on `channel`; raise as `connection` does."""
        try:
            async with await Connection.connect(self._conninfo, autocommit=True) as connection:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                yield connection
        except (psycopg.Error, OSError) as error:
            raise self.explained(error) from error

    async def close(self) -> None:
        """Close all connections; a later `connection` opens them again."""
        async with self._opening:
            self._pool = None
            if self._end is not None:
                await self._end.aclose()

    def explained(self, error: Exception) -> StorageError:
        """Return the error of the workbench for one of the driver; its text has nothing of the url but the place."""
        if isinstance(error, psycopg.Error) and error.sqlstate and not _is_lost(error):
            # Whoever owns the database writes it: this text comes into errors, journals and logs.
            said = sanitize_line((error.diag.message_primary or type(error).__name__)[:MOST_SAID_CHARS])
            advice = "run `agent database migrate`" if error.sqlstate in _NO_SCHEMA else ""
            return StorageError(f"the database at {self.place} refused: {said} ({error.sqlstate})", advice=advice)
        return DatabaseDownError(f"the database at {self.place} does not answer", advice=_DOWN)

    async def refusal(self) -> str:
        """Return why the server takes no connection, without the user's name; empty if it takes one."""
        try:
            async with await Connection.connect(self._conninfo):
                return ""
        except (psycopg.Error, OSError) as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            user = conninfo_to_dict(self._conninfo).get("user")
            text = said[-1].rpartition("FATAL:")[2].strip()[:_MOST_REASON_CHARS]
            return text.replace(f'"{user}"', "of the address") if user else text

    async def _connected(self, pool: AsyncConnectionPool[Connection]) -> Connection:
        """Return a connection of the pool; where the server refuses one, do not wait for the end of the time."""
        if asyncio.get_running_loop().time() < self._paused_until:
            raise psycopg.OperationalError("the server took no connection a moment ago")
        self._refused.clear()
        connecting = asyncio.create_task(pool.getconn())
        refused = asyncio.create_task(self._refused.wait())
        try:
            await asyncio.wait((connecting, refused), return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done():
                self._paused_until = asyncio.get_running_loop().time() + PAUSE_SECONDS
                raise psycopg.OperationalError("the server took no connection")
            return connecting.result()
        except asyncio.CancelledError:
            if connecting.done() and not connecting.cancelled() and connecting.exception() is None:
                await pool.putconn(connecting.result())
            raise
        finally:
            refused.cancel()
            if not connecting.done():
                connecting.cancel()

    async def _note_refused(self, pool: AsyncConnectionPool[Connection]) -> None:
        del pool
        self._refused.set()

    async def _opened(self) -> AsyncConnectionPool[Connection]:
        async with self._opening:
            if self._pool is None:
                # A database is in no folder: it belongs to whoever has the state folder.
                await asyncio.to_thread(check_record, state_dir())
                pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
                    self._conninfo,
                    connection_class=Connection,
                    min_size=0,
                    max_size=MOST_CONNECTIONS,
                    timeout=CONNECT_SECONDS,
                    reconnect_timeout=0,
                    reconnect_failed=self._note_refused,
                    check=AsyncConnectionPool.check_connection,
                    open=False,
                )
                await pool.open(wait=False)
                self._pool, self._end = pool, _closing(pool)
                await anext(self._end)
            return self._pool


async def _closing(pool: AsyncConnectionPool[Connection]) -> AsyncGenerator[None]:
    """Close the pool when this is closed: an event loop that ends closes its generators."""
    try:
        yield
    finally:
        await pool.close()


def _is_lost(error: psycopg.Error) -> bool:
    """Return True if the server went away, or cannot take connections now."""
    state = error.sqlstate or ""
    return state.startswith(("08", "57P", "53"))


def _place(url: str) -> str:
    """Return host, port and name of the database; raise `ConfigError` for what is no address of one."""
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    try:
        if authority.count("@") > 1 or "@" in path:
            raise psycopg.ProgrammingError  # the rest of a password would count as host or name, and be shown
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        # The driver's text repeats the url.
        raise ConfigError(
            "the address of the database cannot be read",
            advice="it has the form postgresql://USER@HOST:PORT/NAME, with %40 for @ and %2F for / in a password;"
            " settings: database.url_env",
            page="how-to/database.md",
        ) from None
    host, port, name = (
        str(parts.get(key) or other) for key, other in (("host", "local"), ("port", "5432"), ("dbname", ""))
    )
    return f"{host}:{port}/{name}"


class ServerFacts(Struct, frozen=True):
    """Version, time of one answer, and how far this machine's clock is ahead of the server's."""

    version: str
    milliseconds: float
    clock_seconds: float


async def server_facts(database: Database) -> ServerFacts:
    """Ask the server; raise `DatabaseDownError`."""
    async with database.connection() as connection:
        began, sent = datetime.now(UTC), perf_counter()
        found = await connection.execute("SELECT left(current_setting('server_version'), 100), clock_timestamp()")
        row = await found.fetchone()
        seconds = perf_counter() - sent
    version, moment = row if row is not None else ("", began)
    ahead = 0.0
    if isinstance(moment, datetime):
        ahead = (began - moment).total_seconds() + seconds / 2
    return ServerFacts(str(version), seconds * 1000, ahead)
