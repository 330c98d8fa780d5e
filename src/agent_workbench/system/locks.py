"""File locks that name their holder. The kernel releases them when the holder dies."""

import errno
import fcntl
import os
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from agent_workbench.core.errors import LockedError, StorageError
from agent_workbench.system.atomic_files import storage_error, write_all
from agent_workbench.system.command_bounds import check_record

_MAX_TEXT_BYTES = 1000
# `lock_holder` takes the lock for a moment only; an owner keeps it for long.
_TRIES = 5
_PAUSE_SECONDS = 0.01
_TAKEN = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


def describe_holder() -> str:
    """Return a description of this process for other processes: process id, host, and time."""
    since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"pid {os.getpid()} on {socket.gethostname()} since {since}"


class FileLock:
    """Exclusive `flock` on a file that contains the text of its holder; the file remains when the lock is free.

    Use `acquire` and `release`, or `with`. `acquire` may block for some milliseconds while another process looks for
    the holder, so call it in a thread. This object holds the lock, not the process: a second `FileLock` on the same
    path is refused.
    """

    def __init__(self, path: Path, holder_text: str) -> None:
        """Prepare the lock; `acquire` creates the file."""
        self._path = path
        self._text = holder_text.encode("utf-8", "replace")[:_MAX_TEXT_BYTES]
        self._descriptor: int | None = None

    def acquire(self, *, wait_seconds: float = 0.0) -> None:
        """Acquire the lock, waiting about `wait_seconds` for its holder.

        Raises `LockedError` that names the holder, `StorageError` if the file cannot be used, `TrustError` in a command
        of the agent outside of its own folders: whoever locks something is about to change it.
        """
        check_record(self._path)
        if self._descriptor is not None:
            raise LockedError(f"{self._path} is already locked by this process", holder=describe_holder())
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise storage_error(f"the lock {self._path} could not be opened", error) from error
        try:
            self._take(descriptor, wait_seconds)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock, if it is held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # the text counts only while the lock is held, so a remaining one does no harm
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _take(self, descriptor: int, wait_seconds: float) -> None:
        if not _lock(descriptor, fcntl.LOCK_EX, self._path, wait_seconds):
            holder = _text(descriptor)
            raise LockedError(
                f"{self._path.parent} is in use by {holder}",
                holder=holder,
                advice="wait until that process has ended, or end it; this frees the lock",
            )
        try:
            os.ftruncate(descriptor, 0)
            write_all(descriptor, self._text)
        except OSError as error:
            raise storage_error(f"the lock {self._path} could not be written", error) from error


def lock_holder(path: Path) -> str:
    """Return the holder text of the lock at `path`, empty if the lock is free or the file is missing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise storage_error(f"the lock {path} could not be opened", error) from error
    try:
        return "" if _lock(descriptor, fcntl.LOCK_SH, path) else _text(descriptor)
    finally:
        os.close(descriptor)


def lock_descriptor(descriptor: int, path: Path, wait_seconds: float) -> None:
    """Lock an open file or folder until its descriptor is closed; raise `StorageError` if it stays locked.

    Blocks for at most `wait_seconds`.
    """
    if not _lock(descriptor, fcntl.LOCK_EX, path, wait_seconds):
        raise StorageError(
            f"{path} stayed locked by another process for {wait_seconds:g} s",
            advice="find that process with `lsof` or `fuser`; end it if it hangs, then try again",
        )


def _lock(descriptor: int, kind: int, path: Path, wait_seconds: float = 0.0) -> bool:
    """Return True after acquiring the lock, False if it stays locked."""
    for _ in range(_TRIES + round(wait_seconds / _PAUSE_SECONDS)):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise storage_error(f"the file system cannot lock {path}", error) from error
            time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False


def _text(descriptor: int) -> str:
    text = os.pread(descriptor, _MAX_TEXT_BYTES, 0).decode("utf-8", "replace")
    return "".join(filter(str.isprintable, text)).strip() or "an unknown process"
