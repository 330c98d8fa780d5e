"""Bounded reading of regular files, where a pipe, a device or an endless file may be in their place."""

import errno
import os
import stat
from pathlib import Path


class NotRegularError(OSError):
    """The path is a folder, a pipe, a socket or a device, not a regular file."""


def open_regular(path: Path | str, flags: int = os.O_RDONLY, *, folder: int | None = None, follow: bool = False) -> int:
    """Return a descriptor for a regular file; links, pipes and devices raise `OSError` at once.

    A relative path starts at `folder`, a descriptor. With `follow` a link at the end of the path is followed.
    """
    held = flags | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, held, 0o666, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularError(errno.EINVAL, "not a regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: Path | str, max_bytes: int, *, follow: bool = False) -> bytes:
    """Return the content of a regular file; raise `OSError`, with `EFBIG` for more than `max_bytes`."""
    with os.fdopen(open_regular(path, follow=follow), "rb") as file:
        if os.fstat(file.fileno()).st_size <= max_bytes:
            data = file.read(max_bytes + 1)
            if len(data) <= max_bytes:
                return data
    raise OSError(errno.EFBIG, f"more than {max_bytes} bytes")


def only_owner_writes(path: Path) -> bool:
    """Return True if this user owns a file and nobody else may write to it; raise `OSError`."""
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
