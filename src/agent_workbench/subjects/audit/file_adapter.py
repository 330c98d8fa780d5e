"""SQLite file of an audit index: its tables, its rows with their digests, and repair of a damaged one."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent_workbench.core.errors import LockedError, StorageError
from agent_workbench.core.history.audit_records import AuditCost, AuditDecision, AuditEntry, AuditRecord
from agent_workbench.system.atomic_files import system_message
from agent_workbench.system.locks import FileLock, describe_holder

FORMAT = 1
_APPLICATION = 0x41574132
_BUSY_SECONDS = 5.0
# A rebuild may take a minute; whoever waits longer answers from the content as it is.
LOCK_SECONDS = 2.0

# What decides an answer is in a table and in an index: the check of a file compares the two.
_TABLES = """
CREATE TABLE journals (
  session TEXT PRIMARY KEY, size INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL,
  ours INTEGER NOT NULL, parent TEXT NOT NULL, parent_seq INTEGER NOT NULL,
  position INTEGER NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL, trail BLOB NOT NULL, problem TEXT NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX journals_whole ON journals (
  size, modified, inode, ours, parent, parent_seq, position, seq, hash, trail, problem
);
CREATE TABLE entries (
  session TEXT NOT NULL, seq INTEGER NOT NULL, time TEXT NOT NULL,
  service TEXT NOT NULL, intent TEXT NOT NULL, task TEXT NOT NULL, status TEXT NOT NULL,
  record BLOB NOT NULL, digest BLOB NOT NULL, UNIQUE (session, seq)
) STRICT;
CREATE INDEX entries_by_time ON entries (time, session, seq, service, intent, task, status);
CREATE TABLE decisions (
  session TEXT NOT NULL, seq INTEGER NOT NULL, time TEXT NOT NULL,
  service TEXT NOT NULL, intent TEXT NOT NULL, task TEXT NOT NULL, decider TEXT NOT NULL,
  record BLOB NOT NULL, digest BLOB NOT NULL, UNIQUE (session, seq)
) STRICT;
CREATE INDEX decisions_by_time ON decisions (time, session, seq, service, intent, task, decider);
CREATE TABLE costs (
  session TEXT NOT NULL, seq INTEGER NOT NULL, time TEXT NOT NULL,
  service TEXT NOT NULL, intent TEXT NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL, worker TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL, answer_tokens INTEGER NOT NULL, dollars REAL NOT NULL, answers INTEGER NOT NULL,
  unproved TEXT NOT NULL,
  UNIQUE (session, seq, endpoint, model)
) STRICT;
CREATE INDEX costs_by_time ON costs (
  time, session, seq, service, intent, endpoint, model, worker, prompt_tokens, answer_tokens, dollars, answers,
  unproved
);
"""
# The disk refuses: removing the file would not help, the journals can be read nevertheless.
_REFUSED = {
    *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

Answer = TypeVar("Answer")
Use = Callable[[sqlite3.Connection, bool], Answer]
"""Work on an open index; the flag is True if the index may be changed, because no other process can change it now."""

_DIGEST_BYTES = 8
NOT_OURS = "its session was not begun on this machine"

Kept = TypeVar("Kept", AuditEntry, AuditDecision)


class DamagedIndexError(sqlite3.DatabaseError):
    """The content of the index cannot be what was written."""


class ForeignFileError(Exception):
    """The file belongs to another program."""


class IndexFile:
    """SQLite file at `path`, opened for each use. Blocks; safe for threads and processes.

    A damaged file is removed and made again. Where the file cannot be used, an index in memory takes its place.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checked = False

    def use(self, work: Use[Answer], notes: list[str]) -> Answer:
        """Return what `work` returns; add to `notes` what the reader should know. Raises `StorageError`."""
        why = ""
        for attempt in range(2):
            try:
                return self._on_file(work, notes)
            except (sqlite3.Error, UnicodeError) as error:  # a text may hold any byte
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code in _BUSY:
                    raise StorageError(
                        f"the audit index {self._path} stays in use by another process", advice="try again"
                    ) from error
                if code in _REFUSED or attempt:
                    why = str(error)
                    break
                self._discard(str(error), notes)
            except (OSError, StorageError) as error:
                why = system_message(error) or str(error)
                break
            except ForeignFileError:
                why = "it is the file of another program"
                break
        notes.append(f"the audit index {self._path} was not used ({why}); all journals were read instead")
        try:
            with closing(_connect(":memory:")) as connection:
                _create(connection)
                return work(connection, True)
        except sqlite3.Error as error:
            raise StorageError(f"the journals could not be indexed: {error}") from error

    def _on_file(self, work: Use[Answer], notes: list[str]) -> Answer:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock() as held, closing(_connect(str(self._path))) as connection:
            if not held:
                notes.append("another process updates the audit index; what is newest may be missing")
            self._prepare(connection, may_create=held)
            return work(connection, held)

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        """Hold the lock of those who change the index; give False if another process keeps it."""
        lock = FileLock(self._path.with_suffix(".lock"), describe_holder())
        try:
            lock.acquire(wait_seconds=LOCK_SECONDS)
        except LockedError:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def _prepare(self, connection: sqlite3.Connection, *, may_create: bool) -> None:
        """Create the tables in an empty file; raise for a damaged file, or another program's."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise ForeignFileError
            if not may_create:
                raise StorageError(f"{self._path} is being made by another process", advice="try again")
            _create(connection)
            self._path.chmod(0o600)
        elif version != FORMAT:
            raise DamagedIndexError(f"its format is {version}, this program has {FORMAT}")
        if not self._checked:
            if _schema(connection) != _right_schema():
                raise DamagedIndexError("its tables are other ones")
            if (found := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
                raise DamagedIndexError(str(found))
            self._checked = True

    def _discard(self, why: str, notes: list[str]) -> None:
        """Remove a damaged file, unless another process is just making it again."""
        with self._lock() as held:
            if held:
                for ending in ("", "-journal", "-wal", "-shm"):
                    with suppress(OSError):
                        self._path.with_name(self._path.name + ending).unlink()
        notes.append(f"the audit index was damaged ({why}) and was built again from the journals")


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    # What a power cut takes is read from the journals again.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.executescript(
        f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT}; COMMIT;"
    )
    connection.execute("PRAGMA journal_mode = WAL")


def _schema(connection: sqlite3.Connection) -> tuple[object, ...]:
    return tuple(connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name"))


@cache
def _right_schema() -> tuple[object, ...]:
    with closing(_connect(":memory:")) as connection:
        _create(connection)
        return _schema(connection)


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
