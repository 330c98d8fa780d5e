"""Files that are there whole or not at all, also after a power cut, and what a failing disk is called."""

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
from agent_workbench.system.regular_files import read_regular

_ADVICE = {
    errno.ENOSPC: "free some space on that disk, then try again",
    errno.EDQUOT: "your quota on that disk is used up: free some space, then try again",
    errno.EFBIG: "a limit on the size of files is in force (`ulimit -f`): raise it, then try again",
    errno.EROFS: "that file system is mounted read-only",
    errno.EACCES: "look at the permissions of the file and of its folder",
    errno.EPERM: "look at the permissions of the file and of its folder",
    errno.ELOOP: "a symbolic link stands where a file or folder belongs",
    errno.EIO: "the disk reports an error: look at the system's log before going on",
}


# What is compared before it is replaced are small documents.
_MOST_COMPARED_BYTES = 200_000_000


class Expectation(Enum):
    """What is expected of a file's content where no content is named."""

    NOT_CHECKED = "not checked"


NOT_CHECKED: Literal[Expectation.NOT_CHECKED] = Expectation.NOT_CHECKED


class FileChanged(StorageError):
    """The file does not hold what it was expected to; nothing was written. `found` is what it holds, None: no file."""

    def __init__(self, path: Path, found: bytes | None) -> None:
        super().__init__(
            f"{path} was {'removed' if found is None else 'changed'} since it was read", advice="read it again"
        )
        self.found = found


def write_atomically(
    path: Path, data: bytes, expected: bytes | Literal[Expectation.NOT_CHECKED] | None = NOT_CHECKED
) -> None:
    """Make `data` the durable content of `path`; on any failure the file is as it was.

    An existing file keeps its permissions and, where we may, its owner; through a symbolic link its target is
    written. With `expected` (None: there must be no file) the content is compared just before, and `FileChanged`
    raised where it differs. Blocks. Raises `StorageError` with advice when the disk refuses.
    """
    try:
        target = path.resolve()
        found = _content(target) if expected is not NOT_CHECKED else None
        if expected is not NOT_CHECKED and found != expected:
            raise FileChanged(path, found)
        _replace(target, data)
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of symbolic links
        raise storage_error(f"{path} could not be written", error) from error


def sync_file(descriptor: int) -> None:
    """Return when what was written is on the disk."""
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:  # macOS: fsync leaves the data in the drive's cache
        with suppress(OSError):
            fcntl.fcntl(descriptor, full_sync)
            return
    os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Return when the names in a folder are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(directory: Path) -> None:
    """Create a folder with those above it, durably; one that is there already is left as it is."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync_directory(created.parent)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte, in as many calls as it takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def storage_error(what: str, error: OSError | RuntimeError) -> StorageError:
    """Return the error a user sees: what failed, why, and what to do about it."""
    number = error.errno if isinstance(error, OSError) else None
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return StorageError(f"{what}: {why}", advice=_ADVICE.get(number or 0, ""))


def said_by_disk(error: Exception) -> str:
    """Return why the system refused, without the path, for where there is little room; empty where it did not."""
    for each in (error, error.__cause__):
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
    return ""


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path, _MOST_COMPARED_BYTES)
    except FileNotFoundError:
        return None


def _replace(target: Path, data: bytes) -> None:
    fresh = target.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        try:
            with suppress(FileNotFoundError):
                _take_over(descriptor, target.stat())
            write_all(descriptor, data)
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def _take_over(descriptor: int, former: os.stat_result) -> None:
    """Give the new file the owner and the permissions of the one it replaces."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (former.st_uid, former.st_gid):
        with suppress(PermissionError):  # only root gives files away; others leave the file theirs
            os.fchown(descriptor, former.st_uid, former.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(former.st_mode))
