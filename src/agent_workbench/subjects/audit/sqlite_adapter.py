"""Port `AuditIndex` over a SQLite file: brought up to date from changed journals, then asked."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent_workbench.core.errors import StorageError
from agent_workbench.core.history.audit_records import (
    AuditDecision,
    AuditEntry,
    AuditPage,
    AuditProblem,
    AuditQuery,
    AuditRecord,
    CostKey,
    CostPage,
    CostQuery,
    CostSum,
    DecisionPage,
    DecisionQuery,
    check_query,
    oldest_day,
    oldest_time,
    sorted_sums,
    total_cost,
)
from agent_workbench.core.history.audit_trail import AuditTrail
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.audit_index import AuditSource, JournalGrowth, JournalMark, JournalStamp
from agent_workbench.subjects.audit.file_adapter import DamagedIndexError, IndexFile, insert_record, read_record

Page = TypeVar("Page", AuditPage, DecisionPage, CostPage)

# A fork's journal begins with its parent's events, which count once: there, unless they are missing there.
_SHOWN = """
  LEFT JOIN journals own ON own.session = r.session
  LEFT JOIN journals parent ON parent.session = own.parent AND r.seq <= own.parent_seq AND r.seq <= parent.seq
  WHERE parent.session IS NULL AND r.time > ?"""
# Names of columns, which are no text of the user's.
_KEYS = {
    CostKey.DAY: "substr(r.time, 1, 10)",
    CostKey.ENDPOINT: "r.endpoint",
    CostKey.MODEL: "r.model",
    CostKey.SERVICE: "r.service",
    CostKey.WORKER: "r.worker",
}
_SUMS = """coalesce(sum(r.answers), 0), coalesce(sum(r.prompt_tokens), 0), coalesce(sum(r.answer_tokens), 0),
  total(r.dollars), coalesce(sum(r.answers * (r.unproved != '' OR coalesce(own.ours, 1) = 0)), 0)"""

Value = str | int

# A kill loses the work on this many journals at most.
_JOURNALS_AT_ONCE = 50
_KINDS = ("entries", "decisions", "costs")

Stamps = dict[SessionId, JournalStamp]


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
        return await self._answer(lambda connection: entries(connection, query, now))

    async def decisions(self, query: DecisionQuery, now: str) -> DecisionPage:
        """Return the decisions that fit."""
        check_query(query)
        return await self._answer(lambda connection: decisions(connection, query, now))

    async def costs(self, query: CostQuery, now: str) -> CostPage:
        """Return sums of the costs that fit."""
        check_query(query)
        return await self._answer(lambda connection: costs(connection, query, now))

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


def entries(connection: sqlite3.Connection, query: AuditQuery, now: str) -> AuditPage:
    """Return a page of entries."""
    status = query.status or ""
    rest, values = _filters(
        oldest_time(now, query.days), {"service": query.service, "intent": query.intent, "status": status}
    )
    rows, total = _page(connection, f"entries r {rest}", values, query.limit, query.offset)
    found = tuple(read_record(AuditEntry, *row) for row in rows)
    return AuditPage(found, total, problems(connection))


def decisions(connection: sqlite3.Connection, query: DecisionQuery, now: str) -> DecisionPage:
    """Return a page of decisions."""
    names = {"service": query.service, "intent": query.intent, "task": query.task}
    rest, values = _filters(oldest_time(now, query.days), names)
    if query.by:
        rest, values = f"{rest} AND substr(r.decider, 1, ?) = ?", [*values, len(query.by), query.by]
    rows, total = _page(connection, f"decisions r {rest}", values, query.limit, query.offset)
    found = tuple(read_record(AuditDecision, *row) for row in rows)
    return DecisionPage(found, total, problems(connection))


def costs(connection: sqlite3.Connection, query: CostQuery, now: str) -> CostPage:
    """Return a page of sums of costs."""
    rest, values = _filters(oldest_day(now, query.days), {"service": query.service, "intent": query.intent})
    keys = ", ".join(_KEYS[key] if key in query.by else "''" for key in CostKey)
    # Only names of columns and question marks are inserted.
    rows = connection.execute(f"SELECT {keys}, {_SUMS} FROM costs r {rest} GROUP BY 1, 2, 3, 4, 5", values)  # noqa: S608
    sums = sorted_sums(CostSum(*row) for row in rows)
    return CostPage(sums[query.offset : query.offset + query.limit], len(sums), total_cost(sums), problems(connection))


def problems(connection: sqlite3.Connection) -> tuple[AuditProblem, ...]:
    """Return the journals that could not be read whole."""
    rows = connection.execute("SELECT session, problem FROM journals WHERE problem != '' ORDER BY session DESC")
    return tuple(AuditProblem(SessionId(session), problem) for session, problem in rows)


def _filters(oldest: str, names: dict[str, str]) -> tuple[str, list[Value]]:
    """Return the condition for the rows that fit, and its values."""
    wanted = {name: value for name, value in names.items() if value}
    conditions = "".join(f" AND r.{name} = ?" for name in wanted)
    return _SHOWN + conditions, [oldest, *wanted.values()]


def _page(
    connection: sqlite3.Connection, rest: str, values: Sequence[Value], limit: int, offset: int
) -> tuple[list[tuple[object, object, object]], int]:
    """Return the rows of a page, newest first, and how many rows fit in all."""
    # Only names of columns and question marks are inserted.
    total = connection.execute(f"SELECT count(*) FROM {rest}", values).fetchone()[0]  # noqa: S608
    order = "ORDER BY r.time DESC, r.session, r.seq LIMIT ? OFFSET ?"
    rows = connection.execute(f"SELECT r.record, r.digest, own.ours FROM {rest} {order}", [*values, limit, offset])  # noqa: S608
    return rows.fetchall(), total


def update(connection: sqlite3.Connection, source: AuditSource) -> None:
    """Bring the index up to date: read what changed, and remove what is gone."""
    known = _known_stamps(connection)
    stamps = source.stamps()
    gone = set(known) - {each.session for each in stamps}
    changed = [each for each in stamps if known.get(each.session) != each]
    if gone:
        with _transaction(connection):
            for session in gone:
                _remove(connection, session)
    for start in range(0, len(changed), _JOURNALS_AT_ONCE):
        with _transaction(connection):
            for stamp in changed[start : start + _JOURNALS_AT_ONCE]:
                _read(connection, source, stamp, known.get(stamp.session))


def replace_all(connection: sqlite3.Connection, records: Iterable[AuditRecord]) -> None:
    """Replace the whole content in one transaction."""
    with _transaction(connection):
        for table in ("journals", *_KINDS):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 (one of four names)
        for record in records:
            insert_record(connection, record)


def _known_stamps(connection: sqlite3.Connection) -> Stamps:
    rows = connection.execute("SELECT session, size, modified, inode FROM journals")
    return {SessionId(row[0]): JournalStamp(*row) for row in rows}


def _read(connection: sqlite3.Connection, source: AuditSource, stamp: JournalStamp, known: JournalStamp | None) -> None:
    """Add what is new in one journal. The stamp was taken before: what is written meanwhile changes it again."""
    # A journal is only appended to: a file that did not grow, or is another one, is read from its start.
    appended = known is not None and known.inode == stamp.inode and known.size < stamp.size
    mark = _mark(connection, stamp.session) if appended else None
    growth = source.read(stamp.session, mark)
    if not growth.grown:
        _remove(connection, stamp.session)
    for record in growth.records:
        insert_record(connection, record)
    _keep(connection, stamp, growth)


def _mark(connection: sqlite3.Connection, session: SessionId) -> JournalMark | None:
    row = connection.execute("SELECT position, seq, hash, trail FROM journals WHERE session = ?", (session,)).fetchone()
    if row is None:
        return None
    position, seq, head, trail = row
    try:
        return JournalMark(position, seq, head, msgspec.json.decode(trail, type=AuditTrail))
    except (msgspec.MsgspecError, TypeError) as error:
        raise DamagedIndexError(f"the row of {session} cannot be read: {error}") from error


def _keep(connection: sqlite3.Connection, stamp: JournalStamp, growth: JournalGrowth) -> None:
    mark = growth.mark
    read = (mark.position, mark.seq, mark.hash, msgspec.json.encode(mark.trail), growth.problem)
    if growth.grown:
        connection.execute(
            "UPDATE journals SET size = ?, modified = ?, inode = ?, ours = ?, position = ?, seq = ?, hash = ?, "
            "trail = ?, problem = ? WHERE session = ?",
            (stamp.size, stamp.modified_ns, stamp.inode, growth.ours, *read, stamp.session),
        )
        return
    head = (stamp.session, stamp.size, stamp.modified_ns, stamp.inode, growth.ours, growth.parent, growth.parent_seq)
    connection.execute("INSERT INTO journals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*head, *read))


def _remove(connection: sqlite3.Connection, session: SessionId) -> None:
    for table in ("journals", *_KINDS):
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 (one of four names)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # SQLite ends it by itself when the disk is full
            connection.execute("ROLLBACK")
