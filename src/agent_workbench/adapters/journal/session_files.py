"""Files of a session: their names, and access to them that follows no link, pipe or device of a repository."""

import os
from pathlib import Path

from agent_workbench.core.errors import JournalError
from agent_workbench.system.atomic_files import storage_error, sync_directory, sync_file, write_all
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.regular_files import open_regular

JOURNAL = "journal.jsonl"
LOCK = "lock"
BLOBS = "blobs"


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file; raise `OSError`."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read()


def save_torn_bytes(directory: Path, torn: bytes) -> Path:
    """Move an unfinished last line from the journal to `journal.torn-<n>`, durably; raise `StorageError`."""
    try:
        return move_end(directory, "torn", torn)
    except OSError as error:
        raise storage_error(f"the unfinished line of {directory} could not be set aside", error) from error


def move_end(directory: Path, name: str, end: bytes) -> Path:
    """Move the last bytes of the journal to `journal.<name>-<n>`, durably, and return its path; raise `OSError`."""
    check_record(directory)
    number = 1
    while (path := directory / f"journal.{name}-{number}").exists() or path.is_symlink():
        number += 1
    descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(descriptor, end)
        sync_file(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(directory)
    _cut(directory / JOURNAL, end)
    return path


def _cut(journal: Path, end: bytes) -> None:
    descriptor = open_regular(journal, os.O_RDWR)
    try:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - len(end))
        sync_file(descriptor)
    finally:
        os.close(descriptor)


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
