"""Writer of a session's journal: holds its lock, and returns from `append` when the event is on the disk."""

import asyncio
import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from agent_workbench.adapters.journal.blobs import JOURNAL, LOCK, Blobs, save_torn_bytes
from agent_workbench.adapters.journal.line_format import encode_line, join_surrogates
from agent_workbench.adapters.journal.reader import FIRST_KIND, read_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.events.codec import change_texts, encode_event
from agent_workbench.core.fold.output_digests import with_digests
from agent_workbench.core.settings import MEMORY_IGNORE
from agent_workbench.system.atomic_files import make_directories, storage_error, sync_directory, sync_file, write_all
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import open_regular
from agent_workbench.system.locks import FileLock, describe_holder


class AppendOnlyFile:
    """File that only grows; a piece is durable when `append` returns. Blocks; for one thread at a time."""

    def __init__(self, path: Path, *, fresh: bool) -> None:
        """Open the file, or create it durably if it is `fresh`; raise `JournalError`, `StorageError`, `TrustError`."""
        check_record(path)
        self._path = path
        try:
            created = os.O_CREAT | os.O_EXCL if fresh else 0
            self._descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | created)
            if fresh:
                self._sync_fresh()
        except FileExistsError:
            raise JournalError(f"{path} exists already", advice="open it instead of creating it") from None
        except FileNotFoundError:
            raise JournalError(f"there is no {path}") from None
        except OSError as error:
            raise storage_error(f"{path} could not be opened", error) from error
        self._length = os.fstat(self._descriptor).st_size
        self._holds_rest = False

    def _sync_fresh(self) -> None:
        try:
            sync_file(self._descriptor)
            sync_directory(self._path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, data: bytes) -> None:
        """Write `data` durably, or leave the file as it was.

        Raises `StorageError`, and `JournalError` if another process changed or removed the file.
        """
        try:
            self._check()
            write_all(self._descriptor, data)
            sync_file(self._descriptor)
        except OSError as error:
            self._cut_rest()
            raise storage_error(f"{self._path} could not be written", error) from error
        self._length += len(data)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _check(self) -> None:
        """Raise `JournalError` for a file that was removed or changed; cut off what a failed write left."""
        if self._holds_rest:
            os.ftruncate(self._descriptor, self._length)
            self._holds_rest = False
        now = os.fstat(self._descriptor)
        if now.st_nlink == 0:
            raise JournalError(f"{self._path} was removed while in use", advice="put it back, or start a new session")
        if now.st_size != self._length:
            raise JournalError(
                f"{self._path} has {now.st_size} bytes where {self._length} were written",
                advice="another process changed it; `agent sessions verify` shows its content",
            )

    def _cut_rest(self) -> None:
        try:
            os.ftruncate(self._descriptor, self._length)
            sync_file(self._descriptor)
        except OSError:
            self._holds_rest = True  # tried again before the next write; the failed write is reported


class LineComposer:
    """Composes the lines that follow the end of the journal in `directory`. Blocks; for one thread at a time."""

    def __init__(self, directory: Path, redactor: Redactor, last: Recorded | None = None) -> None:
        """Continue after the event `last`, or begin with the first line if there is none."""
        self._redactor = redactor
        self._blobs = Blobs(directory)
        self._next_seq = last.seq + 1 if last else 0
        self._head = last.hash if last else ""

    def next(self, seq: int, time: str, event: Event) -> tuple[bytes, Recorded]:
        """Return the next line and the event as the session keeps it; the blobs of the line are durable by then.

        Raises `JournalError` for an event that does not belong there, `StorageError`.
        """
        if seq != self._next_seq:
            raise JournalError(f"event {seq} cannot be appended, the next one is {self._next_seq}")
        stored = change_texts(event, self._as_recorded)
        kind, body = encode_event(stored)
        if (kind == FIRST_KIND) != (seq == 0):
            raise JournalError(f"{kind} cannot be event {seq}: a journal has {FIRST_KIND} first and only there")
        line, digest = encode_line(seq, time, kind, self._blobs.replace_long_texts(body), self._head)
        return line, Recorded(seq, time, with_digests(stored), digest)

    def advance(self, last: Recorded) -> None:
        """Make `last`, whose line was written, the end of the journal."""
        self._next_seq, self._head = last.seq + 1, last.hash

    def _as_recorded(self, text: str) -> str:
        return self._redactor.redact(join_surrogates(text))


class ResumedJournal(NamedTuple):
    """A journal opened again: its writer, its events, and the length of an unfinished line that was set aside."""

    writer: "JournalWriter"
    events: tuple[Recorded, ...]
    torn_bytes: int


class JournalWriter:
    """`core.ports.stores.Journal` in a folder. Holds the folder's lock until it is closed or the process ends."""

    def __init__(self, directory: Path, redactor: Redactor, lock: FileLock, last: Recorded | None) -> None:
        """Called by `open_new` and `open_existing`, which take the lock."""
        self._lines = LineComposer(directory, redactor, last)
        self._file = AppendOnlyFile(directory / JOURNAL, fresh=False)
        self._directory = directory
        self._lock = lock
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")

    @classmethod
    def open_new(cls, directory: Path, redactor: Redactor) -> "JournalWriter":
        """Create the folder and an empty journal, durably. Blocks.

        Raises `LockedError` naming the holder, `JournalError` if there is a journal, `StorageError`.
        """
        lock = _locked(directory)
        try:
            AppendOnlyFile(directory / JOURNAL, fresh=True).close()
            return cls(directory, redactor, lock, None)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open_existing(cls, directory: Path, redactor: Redactor) -> ResumedJournal:
        """Prove the journal and open it; an unfinished last line is moved to `journal.torn-<n>`. Blocks.

        Raises `LockedError` naming the holder, `JournalError` for any other line that does not fit, `StorageError`.
        """
        if not (directory / JOURNAL).exists():
            raise JournalError(f"there is no {directory / JOURNAL}", advice="`agent sessions list` shows what there is")
        lock = _locked(directory)
        try:
            content = read_journal(directory)
            if content.torn:
                save_torn_bytes(directory, content.torn)
            last = content.events[-1] if content.events else None
            return ResumedJournal(cls(directory, redactor, lock, last), content.events, len(content.torn))
        except BaseException:
            lock.release()
            raise

    @property
    def directory(self) -> Path:
        """The session's folder."""
        return self._directory

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        """Write the event durably and return it as it will be read back, redacted.

        A cancelled call waits for the write before it raises; the event may be in the journal.
        """
        if self._closed:
            raise JournalError("the journal is closed")
        write = asyncio.get_running_loop().run_in_executor(self._thread, self._record, seq, time, event)
        try:
            return await asyncio.shield(write)
        except asyncio.CancelledError:
            await asyncio.wait({write})
            write.exception()  # retrieved, or asyncio logs it
            raise

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        finally:
            self._thread.shutdown(wait=False)

    def _record(self, seq: int, time: str, event: Event) -> Recorded:
        line, recorded = self._lines.next(seq, time, event)
        self._file.append(line)
        self._lines.advance(recorded)
        return recorded

    def _close(self) -> None:
        try:
            self._file.close()
        finally:
            self._lock.release()


def _locked(directory: Path) -> FileLock:
    try:
        make_sessions(directory.parent)
        make_directories(directory)
    except OSError as error:
        raise storage_error(f"{directory} could not be made", error) from error
    lock = FileLock(directory / LOCK, describe_holder())
    lock.acquire()
    return lock


def make_sessions(folder: Path) -> None:
    """Make the folder of the sessions; with the first one git learns that journals stay on this machine."""
    if folder.exists():
        return
    make_directories(folder)
    with contextlib.suppress(FileExistsError), (folder.parent / ".gitignore").open("x") as rules:
        rules.write(MEMORY_IGNORE)
