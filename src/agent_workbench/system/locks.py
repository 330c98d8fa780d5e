"""Locks on files that the kernel gives back by itself when their holder dies, and that say who holds them."""

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

_MOST_TEXT_BYTES = 1000
# Whoever only looks (`lock_holder`) holds the lock for a moment; an owner holds it for long.
_TRIES = 5
_PAUSE_SECONDS = 0.01
_TAKEN = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


def describe_holder() -> str:
    """Return who this process is, for others to read: process id, host, and since when."""
    since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"pid {os.getpid()} on {socket.gethostname()} since {since}"


class FileLock:
    """An exclusive `flock` on a file that holds its holder's text; the file stays, also when the lock is free.

    Use `acquire` and `release`, or `with`. `acquire` waits for an owner only as long as it is told to; it may pause
    some milliseconds for somebody who only looks, so it belongs in a thread. A lock is held by this value, not by the
    process: a second `FileLock` on the same path is refused.
    """

    def __init__(self, path: Path, holder_text: str) -> None:
        """Prepare the lock; nothing is touched before `acquire`."""
        self._path = path
        self._text = holder_text.encode("utf-8", "replace")[:_MOST_TEXT_BYTES]
        self._descriptor: int | None = None

    def acquire(self, *, wait_seconds: float = 0.0) -> None:
        """Take the lock, within `wait_seconds` or so where somebody has it.

        Raises `LockedError` naming the holder, `StorageError` where the file cannot be used.
        """
        if self._descriptor is not None:
            raise LockedError(f"{self._path} is locked here already", holder=describe_holder())
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
        """Give the lock back; without one nothing happens."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # a text left behind is read by nobody: it counts while the lock is held
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
                advice="wait until it has ended, or end it; the lock is free as soon as that process is gone",
            )
        try:
            os.ftruncate(descriptor, 0)
            write_all(descriptor, self._text)
        except OSError as error:
            raise storage_error(f"the lock {self._path} could not be written", error) from error


def lock_holder(path: Path) -> str:
    """Return the text of whoever holds the lock at `path`, empty when it is free or there is no such file."""
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
    """Take the lock of an open file or folder, which closing it gives back; raise `StorageError` where it stays taken.

    Blocks for `wait_seconds` at most.
    """
    if not _lock(descriptor, fcntl.LOCK_EX, path, wait_seconds):
        raise StorageError(
            f"{path} stayed locked by another process for {wait_seconds:g} s",
            advice="find out which one with `lsof` or `fuser`; end it if it hangs, then try again",
        )


def _lock(descriptor: int, kind: int, path: Path, wait_seconds: float = 0.0) -> bool:
    """Take the lock and return True, or return False when it stays taken for some tries."""
    for _ in range(_TRIES + round(wait_seconds / _PAUSE_SECONDS)):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise storage_error(f"the file system does not let {path} be locked", error) from error
            time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False


def _text(descriptor: int) -> str:
    text = os.pread(descriptor, _MOST_TEXT_BYTES, 0).decode("utf-8", "replace")
    return "".join(filter(str.isprintable, text)).strip() or "somebody unknown"
