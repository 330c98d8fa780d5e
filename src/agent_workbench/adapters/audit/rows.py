"""Rows of the audit index: records written into its tables and read back, each proved by its digest."""

import sqlite3
from hashlib import blake2b
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent_workbench.adapters.audit.index_file import DamagedIndexError
from agent_workbench.core.history.audit_records import AuditCost, AuditDecision, AuditEntry, AuditRecord

_DIGEST_BYTES = 8
NOT_OURS = "its session was not begun on this machine"

Kept = TypeVar("Kept", AuditEntry, AuditDecision)


def insert_record(connection: sqlite3.Connection, record: AuditRecord) -> bool:
    """Insert a record; return False if there is one of its line."""
    line = record.session, record.seq
    if isinstance(record, AuditCost):
        sql = "INSERT OR IGNORE INTO costs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        names = (record.time, record.service, record.intent, record.endpoint, record.model, record.worker)
        figures = (record.prompt_tokens, record.answer_tokens, record.dollars, record.answers, record.unproved)
        return connection.execute(sql, (*line, *names, *figures)).rowcount > 0
    data = msgspec.json.encode(record)
    filters = (record.service, record.intent, record.task)
    if isinstance(record, AuditEntry):
        sql = "INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        values = (*line, record.ended, *filters, str(record.status), data, _digest(data))
        return connection.execute(sql, values).rowcount > 0
    sql = "INSERT OR IGNORE INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    return connection.execute(sql, (*line, record.time, *filters, record.by, data, _digest(data))).rowcount > 0


def read_record(kind: type[Kept], data: object, digest: object, ours: object) -> Kept:
    """Return a record; `ours` is the mark of its journal (None: there is none). Raises `DamagedIndexError`."""
    if not isinstance(data, bytes) or _digest(data) != digest:
        raise DamagedIndexError("the digest of a row does not fit")
    try:
        record = msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise DamagedIndexError(f"a row cannot be read: {error}") from error
    return replace(record, unproved=NOT_OURS) if ours == 0 and not record.unproved else record


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()
