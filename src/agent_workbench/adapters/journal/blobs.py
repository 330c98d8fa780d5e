"""Files of a session: their names, access that follows no link, and long texts under the hash of their content."""

import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from agent_workbench.core.errors import JournalError
from agent_workbench.core.events.codec import MAX_DEPTH, JsonObject
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.system.atomic_files import (
    make_directories,
    storage_error,
    sync_directory,
    sync_file,
    write_all,
    write_atomically,
)
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import open_regular

LONGEST_TEXT_BYTES = 4096
_SHA = re.compile(r"[0-9a-f]{64}")
_KEYS = {"blob", "bytes"}

JOURNAL = "journal.jsonl"
LOCK = "lock"
BLOBS = "blobs"


class Blobs:
    """Blobs of one session."""

    def __init__(self, directory: Path) -> None:
        """Use the session's folder `directory`; nothing is touched yet."""
        self._folder = directory / BLOBS
        self._durable: set[str] = set()

    def replace_long_texts(self, body: JsonObject) -> JsonObject:
        """Store each long text durably as a blob; return the body with the blobs' hashes in place of the texts.

        Raises `StorageError`, and `JournalError` for a symbolic link where a blob belongs.
        """
        return {key: _walk(value, self._replace_long_texts) for key, value in body.items()}

    def restore_long_texts(self, body: JsonObject) -> JsonObject:
        """Return the body with the texts of its blobs; raise `JournalError` for a blob that is missing or changed."""
        return {key: _walk(value, self._restore_long_texts) for key, value in body.items()}

    def _replace_long_texts(self, value: JsonValue) -> JsonValue:
        # A character takes at most four bytes, so most texts are known to be short without encoding them.
        if not isinstance(value, str) or len(value) * 4 <= LONGEST_TEXT_BYTES:
            return value
        data = value.encode("utf-8", "surrogatepass")
        if len(data) <= LONGEST_TEXT_BYTES:
            return value
        sha = sha256(data).hexdigest()
        if sha not in self._durable:
            self.write(sha, data)
            self._durable.add(sha)
        return {"blob": sha, "bytes": len(data)}

    def _restore_long_texts(self, value: JsonValue) -> JsonValue:
        if not isinstance(value, dict) or value.keys() != _KEYS:
            return value
        match value:
            case {"blob": str(sha), "bytes": int(size)} if _SHA.fullmatch(sha):
                return self._read(sha, size)
        raise JournalError(f"{quoted(str(value))} names no blob")

    def write(self, sha: str, data: bytes) -> None:
        """Store a blob durably under its hash, which the caller compared; raise as `replace_long_texts`."""
        path = self._folder / sha
        for each in (self._folder, path):
            if each.is_symlink():
                raise JournalError(f"{each} is a symbolic link", advice="remove it: nothing is written through it")
        try:
            make_directories(self._folder)
        except OSError as error:
            raise storage_error(f"{self._folder} could not be made", error) from error
        write_atomically(path, data)

    def read(self, sha: str, size: int) -> bytes:
        """Return a blob; raise `JournalError` if it is missing or changed."""
        try:
            data = read_regular(self._folder / sha)
        except FileNotFoundError:
            raise JournalError(f"blob {sha} is missing") from None
        except OSError as error:
            raise JournalError(f"blob {sha} cannot be read: {error.strerror}") from error
        if len(data) != size or sha256(data).hexdigest() != sha:
            raise JournalError(f"blob {sha} was changed: it has {len(data)} bytes, {size} were written")
        return data

    def _read(self, sha: str, size: int) -> str:
        data = self.read(sha, size)
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise JournalError(f"blob {sha} is not text") from None


def _walk(value: JsonValue, change: Callable[[JsonValue], JsonValue], depth: int = 1) -> JsonValue:
    """Return the value with `change` applied to it, or to its items if `change` left it as it was.

    Raises `JournalError` for a value that is nested more deeply than any event.
    """
    changed = change(value)
    if changed is not value:
        return changed
    if depth > MAX_DEPTH:
        raise JournalError(f"nested more than {MAX_DEPTH} levels deep")
    match value:
        case dict():
            return {key: _walk(each, change, depth + 1) for key, each in value.items()}
        case list():
            return [_walk(each, change, depth + 1) for each in value]
    return value


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
