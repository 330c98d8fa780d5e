"""Schema of the shared database: numbered SQL files and that of Procrastinate, each applied once and in order."""

import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files

from msgspec import Struct
from procrastinate.schema import SchemaManager

from agent_workbench.adapters.database.connection import Connection, Database
from agent_workbench.core.errors import StorageError

_LOCK = 0x61676E74
"""Key of the advisory lock under which the schema changes."""
_PROCRASTINATE = 29
"""Number of the library's own schema: before the tables of the queue. Its version is pinned, see pyproject.toml."""
_FILE = re.compile(r"(\d+)-([a-z-]+)\.sql", re.ASCII)
_TABLE = """\
CREATE TABLE IF NOT EXISTS agent_schema (
    number integer PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied timestamptz NOT NULL DEFAULT now()
)"""


class Migration(Struct, frozen=True):
    """One part of the schema."""

    number: int
    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Digest of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations() -> tuple[Migration, ...]:
    """Return all parts of the schema by number. Blocks."""
    folder = files("agent_workbench.adapters.database") / "schema"
    found = ((_FILE.fullmatch(each.name), each) for each in folder.iterdir())
    own = (Migration(int(name[1]), name[2], each.read_text("utf-8")) for name, each in found if name)
    jobs = Migration(_PROCRASTINATE, "procrastinate", SchemaManager.get_schema())
    return tuple(sorted((*own, jobs), key=lambda each: each.number))


async def migrate(database: Database, wanted: Sequence[Migration]) -> tuple[str, ...]:
    """Apply what is missing of `wanted`, all of it or nothing; return the names of what was applied.

    Raises `StorageError` if the database was migrated by another version, see `check_schema`.
    """
    async with database.connection() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        await connection.execute(_TABLE)
        missing = _missing(wanted, await _applied(connection))
        for each in missing:
            await connection.execute(each.text.encode())
            await connection.execute(
                "INSERT INTO agent_schema (number, name, sha256) VALUES (%s, %s, %s)",
                (each.number, each.name, each.sha256),
            )
    return tuple(each.name for each in missing)


async def check_schema(database: Database, wanted: Sequence[Migration]) -> None:
    """Raise `StorageError` unless the database has exactly the schema `wanted`."""
    async with database.connection() as connection:
        row = await (await connection.execute("SELECT to_regclass('agent_schema') IS NOT NULL")).fetchone()
        applied = await _applied(connection) if row is not None and row[0] else {}
    if missing := _missing(wanted, applied):
        names = ", ".join(each.name for each in missing)
        raise StorageError(f"the database at {database.place} lacks {names}", advice="run `agent database migrate`")


async def _applied(connection: Connection) -> dict[int, str]:
    rows = await (await connection.execute("SELECT number, sha256 FROM agent_schema")).fetchall()
    return {int(str(number)): str(sha256) for number, sha256 in rows}


def _missing(wanted: Sequence[Migration], applied: dict[int, str]) -> list[Migration]:
    known = {each.number: each.sha256 for each in wanted}
    if other := [number for number, sha256 in applied.items() if known.get(number) != sha256]:
        numbers = ", ".join(map(str, sorted(other)))
        raise StorageError(
            f"the database was migrated by another version of Agent Workbench (schema {numbers})",
            advice="use the same version on all machines",
        )
    return [each for each in wanted if each.number not in applied]
