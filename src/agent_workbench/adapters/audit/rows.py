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
    match record:
        case AuditEntry():
            data = msgspec.json.encode(record)
            sql = "INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            filters: tuple[object, ...] = (record.ended, record.service, record.intent, record.task, record.status)
            row = (*filters, data, _digest(data))
        case AuditDecision():
            data = msgspec.json.encode(record)
            sql = "INSERT OR IGNORE INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            filters = (record.time, record.service, record.intent, record.task, record.by)
            row = (*filters, data, _digest(data))
        case AuditCost():
            sql = "INSERT OR IGNORE INTO costs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            names = (record.time, record.service, record.intent, record.endpoint, record.model, record.worker)
            row = (*names, record.prompt_tokens, record.answer_tokens, record.dollars, record.unproved)
    return connection.execute(sql, (record.session, record.seq, *row)).rowcount > 0


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
