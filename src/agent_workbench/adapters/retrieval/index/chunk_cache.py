"""Cache of chunks by content (git blob id), shared by all worktrees, so that no content is parsed twice."""

import sqlite3
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk

# Raise it whenever parsing, chunking or the form of an entry changes; it is part of the file's name.
FORMAT = 2
MAX_BYTES = 200 * 1024 * 1024
# A larger entry is not ours.
_MAX_ENTRY_BYTES = 32 * 1024 * 1024
_MAX_COUNTED = (1 << 31) - 1
# Share of the bound that is left after entries were deleted.
_KEPT_SHARE = 0.75
_APPLICATION = 0x41574231
_BUSY_SECONDS = 2.0
_DAY_SECONDS = 86_400
_TABLE = "CREATE TABLE pieces (key TEXT PRIMARY KEY, used INTEGER NOT NULL, data BLOB NOT NULL)"
# Another process is writing, or the disk refuses: removing the file would not help.
_TRANSIENT_ERRORS = {
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR),
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
}
# Every build of SQLite takes this many values in one statement.
_AT_ONCE = 500


class ChunkCache:
    """SQLite file in `folder`, opened for each call; a corrupt or foreign file is replaced, or else not used.

    Blocks; safe for threads and processes. `max_bytes` bounds its size: least recently used entries go first.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = folder / f"chunks-{FORMAT}.sqlite"
        self._max_bytes = max_bytes

    def find(self, keys: Iterable[str]) -> dict[str, tuple[IndexedChunk, ...]]:
        """Return the cached chunks of these keys."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, tuple[IndexedChunk, ...]] = {}

        def read(cache: sqlite3.Connection) -> None:
            stale, now = [], int(time.time())
            for start in range(0, len(wanted), _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                # Only question marks are inserted.
                query = f"SELECT key, used, data FROM pieces WHERE key IN ({marks})"  # noqa: S608
                rows = cache.execute(query, some).fetchall()
                for key, used, data in rows:
                    with suppress(ValueError):
                        found[key] = _decode(data)
                    if not isinstance(used, int) or now - used > _DAY_SECONDS:
                        stale.append((now, key))
            if stale:
                cache.executemany("UPDATE pieces SET used = ? WHERE key = ?", stale)

        self._with_cache(read)
        return found

    def store(self, entries: Mapping[str, tuple[IndexedChunk, ...]]) -> None:
        """Store chunks under their keys."""
        if not entries:
            return
        now = int(time.time())
        rows = [(key, now, _encode(chunks)) for key, chunks in entries.items()]
        self._with_cache(lambda cache: _write(cache, rows))

    def delete(self, blobs: Collection[str]) -> bool:
        """Delete the chunks of these contents in every language and overwrite them; return True if there were any."""
        dropped = [0]

        def drop(cache: sqlite3.Connection) -> None:
            cache.execute("PRAGMA secure_delete = ON")
            for blob in blobs:
                gone = cache.execute("DELETE FROM pieces WHERE key >= ? AND key < ?", (f"{blob}:", f"{blob};"))
                dropped[0] += gone.rowcount

        if blobs and self.path.exists():
            self._with_cache(drop)
        return dropped[0] > 0

    def count(self) -> int:
        """Return the number of cached contents."""
        counted = [0]

        def read(cache: sqlite3.Connection) -> None:
            counted[0] = cache.execute("SELECT count(*) FROM pieces").fetchone()[0]

        if self.path.exists():
            self._with_cache(read)
        return counted[0]

    def shrink(self) -> None:
        """Delete the least recently used entries if the cache is too large."""

        def drop(cache: sqlite3.Connection) -> None:
            total = cache.execute("SELECT coalesce(sum(length(data)), 0) FROM pieces").fetchone()[0]
            if total <= self._max_bytes:
                return
            spare = total - int(self._max_bytes * _KEPT_SHARE)
            gone = []
            for key, size in cache.execute("SELECT key, length(data) FROM pieces ORDER BY used, rowid"):
                if spare <= 0:
                    break
                gone.append((key,))
                spare -= size
            cache.executemany("DELETE FROM pieces WHERE key = ?", gone)
            cache.commit()
            cache.execute("VACUUM")

        self._with_cache(drop)

    def _with_cache(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do `work` on the cache; if it is damaged, remove it and try once more, then give up."""
        for _ in range(2):
            try:
                with closing(self._open()) as cache, cache:
                    work(cache)
                return
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in _TRANSIENT_ERRORS:
                    return
                self._discard()
            except OSError:
                return

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        cache = sqlite3.connect(self.path, timeout=_BUSY_SECONDS)
        try:
            _prepare(cache)
        except BaseException:
            cache.close()
            raise
        return cache

    def _discard(self) -> None:
        for ending in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + ending).unlink()


def _prepare(cache: sqlite3.Connection) -> None:
    """Create the table in an empty file; raise `sqlite3.DatabaseError` for a foreign file."""
    # Entries lost in a power cut are made again; a spoiled one fails its checksum.
    cache.execute("PRAGMA synchronous = OFF")
    if _is_ours(cache):
        return
    cache.execute("BEGIN IMMEDIATE")
    with cache:
        if _is_ours(cache):  # another process was faster
            return
        if cache.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError(f"not a cache of chunks, format {FORMAT}")
        cache.execute(_TABLE)
        cache.execute(f"PRAGMA application_id = {_APPLICATION}")
        cache.execute(f"PRAGMA user_version = {FORMAT}")


def _is_ours(cache: sqlite3.Connection) -> bool:
    application = cache.execute("PRAGMA application_id").fetchone()[0]
    version = cache.execute("PRAGMA user_version").fetchone()[0]
    return bool(application == _APPLICATION and version == FORMAT)


def _write(cache: sqlite3.Connection, rows: list[tuple[str, int, bytes]]) -> None:
    cache.executemany("INSERT OR REPLACE INTO pieces (key, used, data) VALUES (?, ?, ?)", rows)


def _encode(chunks: Iterable[IndexedChunk]) -> bytes:
    rows = [[p.first_line, p.last_line, p.symbol, p.body, p.names, p.comments] for p in chunks]
    # Names may hold halves of surrogate pairs only if a file's bytes were not UTF-8, and those are replaced on reading.
    return zlib.compress(msgspec.json.encode(rows), 1)


def _decode(data: object) -> tuple[IndexedChunk, ...]:
    """Return the chunks; raise `ValueError` for a damaged entry."""
    if not isinstance(data, bytes):
        raise ValueError("not bytes")
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, _MAX_ENTRY_BYTES)
        rows = msgspec.json.decode(text) if unpacking.eof else None
    except (zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("damaged") from error
    if not isinstance(rows, list):
        raise ValueError("not a list")
    return tuple(_chunk(row) for row in rows)


def _chunk(row: object) -> IndexedChunk:
    match row:
        case [int(first), int(last), str(symbol), dict(body), dict(names), dict(comments)]:
            fields = (body, names, comments)
            whole = all(
                type(times) is int and 0 < times <= _MAX_COUNTED and "\n" not in word
                for each in fields
                for word, times in each.items()
            )
            if 1 <= first <= last <= _MAX_COUNTED and whole:
                return IndexedChunk(first, last, symbol, body, names, comments)
    raise ValueError("not a chunk")
