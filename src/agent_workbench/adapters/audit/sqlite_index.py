"""The port `AuditIndex` over a SQLite file that is brought up to date from the journals before each answer."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from agent_workbench.adapters.audit import queries
from agent_workbench.adapters.audit.index_file import IndexFile
from agent_workbench.adapters.audit.rows import insert_record
from agent_workbench.adapters.audit.update import replace_all, update
from agent_workbench.core.errors import StorageError
from agent_workbench.core.history.audit_records import (
    AuditPage,
    AuditQuery,
    AuditRecord,
    CostPage,
    CostQuery,
    DecisionPage,
    DecisionQuery,
    check_query,
)
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.audit_index import AuditSource

Page = TypeVar("Page", AuditPage, DecisionPage, CostPage)


class SqliteAuditIndex:
    """Implements `core.ports.audit_index.AuditIndex` in the file `path`; without a `source` it has what it is given."""

    def __init__(self, path: Path, source: AuditSource | None = None) -> None:
        self._file = IndexFile(path)
        self._source = source

    async def add(self, record: AuditRecord) -> bool:
        """Add a record, unless there is one of its kind and line."""
        return await asyncio.to_thread(self._changed, lambda connection: insert_record(connection, record))

    async def query(self, query: AuditQuery, now: str) -> AuditPage:
        """Return the entries that fit."""
        check_query(query)
        return await self._answer(lambda connection: queries.entries(connection, query, now))

    async def decisions(self, query: DecisionQuery, now: str) -> DecisionPage:
        """Return the decisions that fit."""
        check_query(query)
        return await self._answer(lambda connection: queries.decisions(connection, query, now))

    async def costs(self, query: CostQuery, now: str) -> CostPage:
        """Return sums of the costs that fit."""
        check_query(query)
        return await self._answer(lambda connection: queries.costs(connection, query, now))

    async def heads(self) -> Mapping[SessionId, int]:
        """Return the last event of each session that was begun on this machine, after an update."""

        def read(connection: sqlite3.Connection, writable: bool) -> dict[SessionId, int]:
            if self._source is not None and writable:
                update(connection, self._source)
            return {
                SessionId(row[0]): row[1] for row in connection.execute("SELECT session, seq FROM journals WHERE ours")
            }

        return await asyncio.to_thread(self._file.use, read, [])

    async def rebuild(self, records: Iterable[AuditRecord]) -> None:
        """Replace the whole content; the next answer reads the journals of the source again."""
        await asyncio.to_thread(self._changed, lambda connection: replace_all(connection, records))

    async def _answer(self, read: Callable[[sqlite3.Connection], Page]) -> Page:
        return await asyncio.to_thread(self._answered, read)

    def _answered(self, read: Callable[[sqlite3.Connection], Page]) -> Page:
        notes: list[str] = []

        def work(connection: sqlite3.Connection, writable: bool) -> Page:
            if self._source is not None and writable:
                update(connection, self._source)
            connection.execute("BEGIN")
            try:
                return read(connection)
            finally:
                connection.execute("COMMIT")

        page = self._file.use(work, notes)
        return replace(page, notes=tuple(notes))

    def _changed(self, change: Callable[[sqlite3.Connection], object]) -> bool:
        notes: list[str] = []

        def work(connection: sqlite3.Connection, writable: bool) -> bool:
            if not writable:
                raise StorageError("the audit index is being changed by another process", advice="try again")
            return bool(change(connection))

        changed = self._file.use(work, notes)
        if any("was not used" in note for note in notes):
            raise StorageError(notes[-1])
        return changed
