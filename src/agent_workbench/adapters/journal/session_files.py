"""Files of a session: their names, and access to them that follows no link, pipe or device of a repository."""

import os
from pathlib import Path

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
