"""Atomic and durable replacement of files, and errors of the disk with advice."""

import errno
import fcntl
import os
import secrets
import stat
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Literal

from agent_workbench.core.errors import StorageError
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import read_regular

_ADVICE = {
    errno.ENOSPC: "free some space on that disk, then try again",
    errno.EDQUOT: "your quota on that disk is used up: free some space, then try again",
    errno.EFBIG: "a limit on the size of files is in force (`ulimit -f`): raise it, then try again",
    errno.EROFS: "the file system is read-only: remount it, or use another folder",
    errno.EACCES: "check the permissions of the file and of its folder",
    errno.EPERM: "check the permissions of the file and of its folder",
    errno.ELOOP: "replace the symbolic link with a file or folder",
    errno.EIO: "the disk reports an error: check the system log first",
}


# Files that are compared before they are replaced are small documents.
_MAX_COMPARED_BYTES = 200_000_000


class Expectation(Enum):
    """Expectation about the content of a file, if no content is given."""

    NOT_CHECKED = "not checked"


NOT_CHECKED: Literal[Expectation.NOT_CHECKED] = Expectation.NOT_CHECKED


class FileChanged(StorageError):
    """The file differs from the expected content, and nothing was written. `found` is its content, None: no file."""

    def __init__(self, path: Path, found: bytes | None) -> None:
        super().__init__(
            f"{path} was {'removed' if found is None else 'changed'} by another program", advice="try again"
        )
        self.found = found


def write_atomically(
    path: Path,
    data: bytes,
    expected: bytes | Literal[Expectation.NOT_CHECKED] | None = NOT_CHECKED,
    *,
    mode: int = 0o666,
) -> None:
    """Replace the content of `path` durably; on any failure the file is unchanged. Blocks.

    An existing file keeps its permissions and, if possible, its owner; a new one gets `mode` less the umask. A symbolic
    link is followed. With `expected` (None: no file) the content is compared first, and `FileChanged` raised if it
    differs. Raises `StorageError` with advice if the disk refuses, `TrustError` in a command of the agent outside of
    its own folders.
    """
    check_record(path)
    try:
        target = path.resolve()
        found = _content(target) if expected is not NOT_CHECKED else None
        if expected is not NOT_CHECKED and found != expected:
            raise FileChanged(path, found)
        _replace(target, data, mode)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        raise storage_error(f"{path} could not be written", error) from error


def sync_file(descriptor: int) -> None:
    """Flush the written data of a file to the disk."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:  # macOS: fsync leaves the data in the drive's cache
        with suppress(OSError):
            fcntl.fcntl(descriptor, full_sync)
            return
    os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Flush the names in a folder to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(directory: Path) -> None:
    """Create a folder and its parents durably, unless it exists.

    Whoever creates one records something in it: raises `TrustError` in a command of the agent outside of its folders.
    """
    check_record(directory)
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync_directory(created.parent)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all bytes, with as many calls as needed."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def storage_error(what: str, error: OSError | RuntimeError) -> StorageError:
    """Return an error for the user: what failed, why, and what to do."""
    number = error.errno if isinstance(error, OSError) else None
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return StorageError(f"{what}: {why}", advice=_ADVICE.get(number or 0, ""))


def system_message(error: Exception) -> str:
    """Return the system's message of an error without the path, empty if it is not from the system."""
    for each in (error, error.__cause__):
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
    return ""


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path, _MAX_COMPARED_BYTES)
    except FileNotFoundError:
        return None


def _replace(target: Path, data: bytes, mode: int) -> None:
    fresh = target.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        try:
            with suppress(FileNotFoundError):
                _copy_owner_and_mode(descriptor, target.stat())
            write_all(descriptor, data)
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def _copy_owner_and_mode(descriptor: int, former: os.stat_result) -> None:
    """Give the new file the owner and the permissions of the file that it replaces."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (former.st_uid, former.st_gid):
        with suppress(PermissionError):  # only root may change the owner
            os.fchown(descriptor, former.st_uid, former.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(former.st_mode))
