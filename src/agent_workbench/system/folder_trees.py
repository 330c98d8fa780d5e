"""Folders and files that a command may have left: bounded reading of regular files, sizes, and removal."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

BLOCK_BYTES = 512


def disk_usage(path: Path) -> int:
    """Return the bytes that a folder takes on the disk; links are not followed, unreadable folders count as empty."""
    total = 0
    waiting = [str(path)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total


def remove_tree(path: str) -> None:
    """Remove a folder with its content, a file or a link; raise `OSError`. A missing path is no error.

    Links are removed, not followed. Depth and missing permissions do not matter: nested folders are moved to the top
    one by one, so that paths have two levels at most.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        Path(path).unlink()
        return
    moved, taken = 0, set[str]()
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        Path(folder).chmod(0o700)
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        if folder == path:
            taken = {name for _, name, _ in found}
        for inside, _, is_folder in found:
            if not is_folder:
                os.unlink(inside)  # noqa: PTH108 - there may be a million
            elif folder == path:
                waiting.append(inside)
            else:
                while (name := str(moved)) in taken:
                    moved += 1
                moved += 1
                Path(inside).chmod(0o700)  # a folder that changes its parent is written to
                Path(inside).rename(f"{path}/{name}")
                waiting.append(f"{path}/{name}")
        if folder != path:
            Path(folder).rmdir()
    Path(path).rmdir()


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
