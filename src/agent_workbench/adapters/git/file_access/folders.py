"""Reaches files below a folder without ever following a symbolic link or leaving it."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from agent_workbench.core.errors import StorageError, WorkspaceError
from agent_workbench.core.patch.paths import is_git_folder, shown
from agent_workbench.core.patch.values import FileContent
from agent_workbench.system import tree_removal as removal
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.regular_files import open_regular

# A file past this is no source; reading it whole would cost more memory than a session may have.
MAX_FILE_BYTES = 200_000_000
_INTO = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP}
# Links, sockets and devices without a driver; pipes and folders are refused with the last one.
_NO_REGULAR = {errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL}
# The fault of the path or of what a command left there, not of the disk.
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EINVAL}


class Reach(NamedTuple):
    """An open folder and a name in it."""

    folder: int
    name: str


def check_inside(path: str) -> None:
    """Raise `WorkspaceError` unless `path` is relative, names something, and stays out of `..` and `.git`."""
    names = path.split("/")
    if "\0" in path or any(name in {"", ".", ".."} for name in names):
        raise WorkspaceError(f"{shown(path)!r} is not a path inside the workspace")
    if any(is_git_folder(name) for name in names):
        raise WorkspaceError(f"{shown(path)} leads into git's own folder")


@contextmanager
def reach(root: str, path: str, made: list[str] | None = None) -> Iterator[Reach]:
    """Open the folder that holds `path`, below `root`, for as long as the block lasts.

    Raises `FileNotFoundError` when a folder on the way is missing; with `made` it is created, and noted there.
    Raises `WorkspaceError` when something on the way is a symbolic link or a file.
    """
    check_inside(path)
    *folders, name = path.split("/")
    current = os.open(root, _INTO)
    try:
        for depth, each in enumerate(folders):
            below = _enter(current, each, "/".join(folders[: depth + 1]), made)
            os.close(current)
            current = below
        yield Reach(current, name)
    finally:
        os.close(current)


def _enter(folder: int, name: str, path: str, made: list[str] | None) -> int:
    if made is not None:
        try:
            os.mkdir(name, dir_fd=folder)
            made.append(path)
        except FileExistsError:
            pass
    try:
        return os.open(name, _INTO, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_FOLDER:
            kind = "a symbolic link" if is_link(folder, name) else "a file, not a folder"
            raise WorkspaceError(f"{shown(path)} is {kind}; nothing is read or written through it") from None
        raise


def is_link(folder: int, name: str) -> bool:
    """Return whether `name` in an open folder is a symbolic link."""
    status = status_of(Reach(folder, name))
    return status is not None and stat.S_ISLNK(status.st_mode)


def status_of(at: Reach) -> os.stat_result | None:
    """Return what stands there, itself and not what it links to; None if there is nothing."""
    try:
        return os.stat(at.name, dir_fd=at.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def look(root: str, path: str) -> os.stat_result | None:
    """Return what stands at `path` below `root`, a link itself and not what it leads to; None if there is nothing.

    Folders on the way are followed even where they are links: it is for looking, never for reading or writing.
    """
    try:
        return os.lstat(os.path.join(root, path))  # noqa: PTH118 - called for every file of a repository
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error(f"{shown(path)} cannot be looked at", error) from error


def link_target(root: str, path: str) -> bytes:
    """Return where a link leads, byte for byte."""
    return os.readlink(os.fsencode(f"{root}/{path}"))  # noqa: PTH115 - pathlib would tidy the target


def read_file(root: str, path: str) -> FileContent | None:
    """Return a regular file, None where there is nothing or a folder.

    Raises `WorkspaceError` for symbolic links, other special files, files over 200 MB and paths that leave `root`.
    """
    try:
        with reach(root, path) as at:
            return read_at(at, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _NOT_OURS:
            raise WorkspaceError(f"{shown(path)} cannot be read: {error.strerror}") from error
        raise storage_error(f"{shown(path)} cannot be read", error) from error


def read_files(root: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return what is in these files; what is no regular file, or cannot be read, is left out."""
    found = {}
    for path in paths:
        with suppress(WorkspaceError, StorageError):
            content = read_file(root, path)
            if content is not None:
                found[path] = content.data
    return found


def read_at(at: Reach, path: str) -> FileContent | None:
    """Return the regular file at an open place, None where there is nothing or a folder; `path` is for messages."""
    try:
        file = open_at(at)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _NO_REGULAR:
            raise
        status = status_of(at)
        if status is not None and stat.S_ISDIR(status.st_mode):
            return None
        raise WorkspaceError(f"{shown(path)} is no regular file") from None
    with os.fdopen(file, "rb") as stream:
        status = os.fstat(file)
        if status.st_size > MAX_FILE_BYTES:
            raise too_large(path, status.st_size)
        return FileContent(stream.read(status.st_size), bool(status.st_mode & stat.S_IXUSR))


def open_at(at: Reach) -> int:
    """Return a descriptor for reading the regular file at an open place; raise `OSError` for anything else."""
    return open_regular(at.name, folder=at.folder)


def too_large(path: str, size: int) -> WorkspaceError:
    """Return the error for a file that is not worked with."""
    return WorkspaceError(
        f"{shown(path)} has {size} bytes; files over {MAX_FILE_BYTES} are not worked with",
        advice="if a command made it, let .gitignore leave it out",
    )


def prune_folders(root: str, paths: Iterable[str]) -> None:
    """Remove the folders that held these paths and are empty now, and theirs; `root` stays."""
    remove_empty(root, {parent for path in paths for parent in parents_of(path)})


def remove_empty(root: str, folders: Iterable[str]) -> None:
    """Remove those of the folders that are empty, the deepest first."""
    for folder in sorted(folders, key=len, reverse=True):
        # Not empty, gone already, or not a folder: then it stays as it is.
        with suppress(OSError, WorkspaceError), reach(root, folder) as at:
            os.rmdir(at.name, dir_fd=at.folder)


def parents_of(path: str) -> list[str]:
    """Return the folders on the way to `path`, the outermost first."""
    names = path.split("/")[:-1]
    return ["/".join(names[:count]) for count in range(1, len(names) + 1)]


def remove_tree(path: str) -> None:
    """Remove a folder and all in it, as `host.removal` does; raise `StorageError`."""
    try:
        removal.remove_tree(path)
    except OSError as error:
        raise storage_error(f"{shown(path, 500)} cannot be removed", error) from error
