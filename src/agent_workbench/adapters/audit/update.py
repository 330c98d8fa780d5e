"""Update of the audit index from the journals: only those that changed since are read."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from agent_workbench.adapters.audit.index_file import DamagedIndexError
from agent_workbench.adapters.audit.rows import insert_record
from agent_workbench.core.history.audit_records import AuditRecord
from agent_workbench.core.history.audit_trail import AuditTrail
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.audit_index import AuditSource, JournalGrowth, JournalMark, JournalStamp

# A kill loses the work on this many journals at most.
_JOURNALS_AT_ONCE = 50
_KINDS = ("entries", "decisions", "costs")

Stamps = dict[SessionId, JournalStamp]


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
