"""Journals as bytes for copies on other machines, and lines from there that continue a journal."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from agent_workbench.adapters.journal.blobs import (
    BLOBS,
    JOURNAL,
    LOCK,
    Blobs,
    move_end,
    read_regular,
)
from agent_workbench.adapters.journal.line_format import claimed_hash, decode_line, peek_kind
from agent_workbench.adapters.journal.session_list import session_folders
from agent_workbench.adapters.journal.session_store import is_registered, register
from agent_workbench.adapters.journal.writer import AppendOnlyFile, make_sessions
from agent_workbench.core.errors import JournalError, LockedError
from agent_workbench.core.ids import SessionId, session_id
from agent_workbench.core.ports.shared_state import BlobName, JournalCopies, JournalEnd, StoredLine, require_blob
from agent_workbench.system.atomic_files import make_directories, storage_error, sync_directory, write_atomically
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import open_regular
from agent_workbench.system.locks import FileLock, describe_holder

_PART = "received.part"
_LOCK = "received.lock"
_WAIT_SECONDS = 60.0
_FIRST_KIND = "session_started"

RECEIVED = ".received."
"""Prefix of the hidden folder in which a session is taken over; no session's name begins with it."""
FENCED = "fenced"
"""Name, behind `journal.`, of lines that another machine's continuation replaced."""
_SHA = re.compile("[0-9a-f]{64}")
_SEQ = re.compile(rb'\{"v":\d{1,9},"seq":(\d{1,9}),')
_BLOB = re.compile(rb'\{"blob":"([0-9a-f]{64})","bytes":(\d{1,12})\}')
_BLOCK = 1_000_000


class ReceivedLines:
    """`core.ports.journal_copies.IncomingLines` behind the journal in `directory`, whose end `find_end` returns.

    One process at a time receives lines.
    """

    def __init__(self, directory: Path, find_end: Callable[[], JournalEnd]) -> None:
        self._directory = directory
        self._part = directory / _PART
        self._lock = FileLock(directory / _LOCK, describe_holder())
        try:
            make_directories(directory)
            self._lock.acquire(wait_seconds=_WAIT_SECONDS)
            try:
                self.end = find_end()
                self._part.unlink(missing_ok=True)
                self._file = os.fdopen(open_regular(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")
            except BaseException:
                self._lock.release()
                raise
        except OSError as error:
            raise storage_error(f"{self._part} could not be made", error) from error
        self._seq, self._hash = self.end.seq, self.end.hash

    def add(self, data: bytes) -> str:
        """Take the next line and return its hash; raise `JournalError` if it does not follow."""
        line = decode_line(data)
        if line.seq != self._seq + 1:
            raise JournalError(f"seq is {line.seq}, {self._seq + 1} belongs here")
        if line.prev != self._hash:
            raise JournalError(f"event {line.seq} follows {line.prev[:12] or 'none'}, not {self._hash[:12] or 'none'}")
        if (line.kind == _FIRST_KIND) != (line.seq == 0):
            raise JournalError(f"kind of event {line.seq} is {line.kind}; {_FIRST_KIND} is first and only there")
        if line.seq == 0 and line.body.get("session") != self._directory.name.rpartition(".")[2]:
            raise JournalError(f"the journal is of session {str(line.body.get('session'))[:40]!r}")
        try:
            self._file.write(data + b"\n")
        except OSError as error:
            raise storage_error(f"{self._part} could not be written", error) from error
        self._seq, self._hash = line.seq, line.hash
        return line.hash

    def keep(self) -> None:
        """Make all lines a part of the journal, durably."""
        try:
            self._file.close()
            lines = read_regular(self._part)
        except OSError as error:
            raise storage_error(f"{self._part} could not be written", error) from error
        path = self._directory / JOURNAL
        journal = AppendOnlyFile(path, fresh=not path.exists())
        try:
            if lines:
                journal.append(lines)
        finally:
            journal.close()
        self.drop()

    def drop(self) -> None:
        """Remove what was not kept."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)
        self._lock.release()


class JournalFolder:
    """`core.ports.journal_copies.JournalCopies` in `folder`; `registry` names the sessions begun here (None: none)."""

    def __init__(self, folder: Path, registry: Path | None) -> None:
        self._folder = folder
        self._registry = registry

    def is_own(self, session: SessionId) -> bool:
        """Return True if the session was begun on this machine, or taken over by it."""
        return self._registry is not None and is_registered(self._registry, self._directory(session))

    def end(self, session: SessionId) -> JournalEnd:
        """Return the end of a journal, an empty one if there is none."""
        last = None
        for each in self._all(session, 0):
            last = each
        return JournalEnd(last.seq, last.hash, last.end) if last is not None else JournalEnd()

    def size(self, session: SessionId) -> int:
        """Return the length of a journal in bytes, 0 if there is none."""
        try:
            return os.lstat(self._directory(session) / JOURNAL).st_size
        except OSError:
            return 0

    def lines(self, session: SessionId, offset: int, max_bytes: int) -> tuple[StoredLine, ...]:
        """Return the whole lines behind `offset`, at least one if there is one."""
        found: list[StoredLine] = []
        for each in self._all(session, offset):
            if found and each.end - offset > max_bytes:
                break
            found.append(each)
        return tuple(found)

    def line(self, session: SessionId, seq: int) -> StoredLine | None:
        """Return a line by its number, None if the journal does not have it."""
        return next((each for each in self._all(session, 0) if each.seq == seq), None)

    def blob(self, session: SessionId, name: BlobName) -> bytes:
        """Return a text; raise `JournalError` if it is missing or another one."""
        return Blobs(self._directory(session)).read(name.sha, name.bytes)

    def lacking(self, session: SessionId) -> tuple[BlobName, ...]:
        """Return the texts that the journal names and that are not there."""
        folder = self._directory(session) / BLOBS
        named = dict.fromkeys(name for each in self._all(session, 0) for name in each.blobs)
        return tuple(each for each in named if not (folder / each.sha).is_file())

    def put_blob(self, session: SessionId, name: BlobName, data: bytes) -> None:
        """Store a text durably; raise `JournalError` if it is another one than is named."""
        require_blob(name, data)
        Blobs(self._directory(session)).write(name.sha, data)

    def receive(self, session: SessionId) -> ReceivedLines:
        """Return the lines that will continue a journal; it is made by `keep` if there is none."""
        return ReceivedLines(self._directory(session), lambda: self.end(session))

    def adopt(self, session: SessionId, source: JournalCopies) -> None:
        """Make the whole journal of another folder a session of this one, begun here as far as this machine goes."""
        directory = self._directory(session)
        if os.path.lexists(directory):
            advice = "move that folder away to continue the session of the other machine here"
            raise LockedError(f"{directory} exists and was not begun here", holder=str(directory), advice=advice)
        if self._registry is None:
            raise JournalError(f"{self._folder} only mirrors sessions")
        hidden = directory.with_name(f"{RECEIVED}{directory.name}")
        check_record(directory)
        try:
            make_sessions(self._folder)
            shutil.rmtree(hidden, ignore_errors=True)
            _copy_blobs(Path(source.folder(session)), hidden)
            write_atomically(hidden / JOURNAL, read_regular(Path(source.folder(session)) / JOURNAL))
            register(self._registry, directory)
            hidden.rename(directory)
            sync_directory(directory.parent)
        except OSError as error:
            raise storage_error(f"{directory} could not be made", error) from error

    def continue_from(self, session: SessionId, source: JournalCopies, offset: int) -> str:
        """Let the journal go on as another folder's does, which is equal up to `offset`."""
        directory, other = self._directory(session), Path(source.folder(session))
        release = self.lock(session)
        try:
            _copy_blobs(other, directory)
            replaced = read_regular(directory / JOURNAL)[offset:]
            aside = move_end(directory, FENCED, replaced) if replaced else ""
            journal = AppendOnlyFile(directory / JOURNAL, fresh=False)
            try:
                journal.append(read_regular(other / JOURNAL)[offset:])
            finally:
                journal.close()
        except OSError as error:
            raise storage_error(f"{directory} could not be continued", error) from error
        finally:
            release()
        return str(aside)

    def lock(self, session: SessionId) -> Callable[[], None]:
        """Keep every process of this machine from opening the journal until the result is called."""
        lock = FileLock(self._directory(session) / LOCK, describe_holder())
        lock.acquire()
        return lock.release

    def sessions(self) -> tuple[SessionId, ...]:
        """Return all sessions of the folder, newest first."""
        return tuple(SessionId(each.name) for each in session_folders(self._folder))

    def folder(self, session: SessionId) -> str:
        """Return the path of a session's folder."""
        return str(self._directory(session))

    def _all(self, session: SessionId, offset: int) -> Iterator[StoredLine]:
        """Yield the whole lines behind `offset`; no more than a block and a line is held."""
        path = self._directory(session) / JOURNAL
        try:
            file = os.fdopen(open_regular(path), "rb", buffering=_BLOCK)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(f"{path} could not be read", error) from error
        with file:
            try:
                file.seek(offset)
                for raw in file:
                    if not raw.endswith(b"\n"):
                        return
                    offset += len(raw)
                    yield _stored(raw[:-1], offset, path)
            except OSError as error:
                raise storage_error(f"{path} could not be read", error) from error

    def _directory(self, session: SessionId) -> Path:
        return self._folder / session_id(session)


def _copy_blobs(source: Path, target: Path) -> None:
    """Copy the blobs that are not there yet; raise `OSError`."""
    make_directories(target / BLOBS)
    try:
        names = [each.name for each in (source / BLOBS).iterdir() if _SHA.fullmatch(each.name)]
    except FileNotFoundError:
        return
    for name in names:
        if not (target / BLOBS / name).is_file():
            write_atomically(target / BLOBS / name, read_regular(source / BLOBS / name))


def _stored(raw: bytes, end: int, path: Path) -> StoredLine:
    seq, digest, kind = _SEQ.match(raw), claimed_hash(raw), peek_kind(raw)
    if seq is None or digest is None or not kind:
        raise JournalError(f"{path}: the line before byte {end} is none of a journal")
    blobs = tuple(BlobName(sha.decode(), int(size)) for sha, size in _BLOB.findall(raw))
    return StoredLine(int(seq[1]), digest, kind, raw, end, blobs)
