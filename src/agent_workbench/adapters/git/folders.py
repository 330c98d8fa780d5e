"""Files below a root folder without following links, and our own links to what only the checkout has."""

import errno
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from agent_workbench.adapters.git.objects import GITLINK, MAX_FILE_BYTES, TreeEntry
from agent_workbench.core.errors import StorageError, WorkspaceError
from agent_workbench.core.patch.paths import is_git_folder, shown
from agent_workbench.core.patch.values import FileContent
from agent_workbench.system import folder_trees as removal
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.folder_trees import open_regular

_INTO = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP}
# Errors of links, sockets and devices without a driver; pipes and folders give the last one.
_NO_REGULAR = {errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL}
# Errors caused by the path, or by permissions that a command set, not by the disk.
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EINVAL}


class OpenParent(NamedTuple):
    """Descriptor of an open folder, and a name in it."""

    folder: int
    name: str


def check_inside(path: str) -> None:
    """Raise `WorkspaceError` for a path that is empty or absolute, or contains `..` or `.git`."""
    names = path.split("/")
    if "\0" in path or any(name in {"", ".", ".."} for name in names):
        raise WorkspaceError(f"{shown(path)!r} is not a path inside the workspace")
    if any(is_git_folder(name) for name in names):
        raise WorkspaceError(f"{shown(path)} is inside git's own folder")


@contextmanager
def open_parent(root: str, path: str, made: list[str] | None = None) -> Iterator[OpenParent]:
    """Open the parent folder of `path` below `root` for the duration of the block.

    Missing folders are created and added to `made`; without `made` they raise `FileNotFoundError`. A symbolic link or a
    file among the folders raises `WorkspaceError`.
    """
    check_inside(path)
    *folders, name = path.split("/")
    current = os.open(root, _INTO)
    try:
        for depth, each in enumerate(folders):
            below = _enter(current, each, "/".join(folders[: depth + 1]), made)
            os.close(current)
            current = below
        yield OpenParent(current, name)
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
            raise WorkspaceError(f"{shown(path)} is {kind}; it is not followed") from None
        raise


def is_link(folder: int, name: str) -> bool:
    """Return True if `name` in an open folder is a symbolic link."""
    status = status_at(OpenParent(folder, name))
    return status is not None and stat.S_ISLNK(status.st_mode)


def status_at(at: OpenParent) -> os.stat_result | None:
    """Return the status of a file or of a link itself, None if there is nothing."""
    try:
        return os.stat(at.name, dir_fd=at.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def status_below(root: str, path: str) -> os.stat_result | None:
    """Return the status of `path` below `root`, of a link itself; None if there is nothing.

    Parent folders that are links are followed, so this must not decide about reading or writing.
    """
    try:
        return os.lstat(os.path.join(root, path))  # noqa: PTH118 - called for every file of a repository
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error(f"the status of {shown(path)} cannot be read", error) from error


def link_target(root: str, path: str) -> bytes:
    """Return the target of a link, byte for byte."""
    return os.readlink(os.fsencode(f"{root}/{path}"))  # noqa: PTH115 - pathlib would tidy the target


def read_file(root: str, path: str) -> FileContent | None:
    """Return the content of a regular file, None for a folder or a missing file.

    Raises `WorkspaceError` for symbolic links, other special files, files over 200 MB and paths that leave `root`.
    """
    try:
        with open_parent(root, path) as at:
            return read_at(at, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _NOT_OURS:
            raise WorkspaceError(f"{shown(path)} cannot be read: {error.strerror}") from error
        raise storage_error(f"{shown(path)} cannot be read", error) from error


def read_files(root: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of files; those that are not regular, or cannot be read, are left out."""
    found = {}
    for path in paths:
        with suppress(WorkspaceError, StorageError):
            content = read_file(root, path)
            if content is not None:
                found[path] = content.data
    return found


def read_at(at: OpenParent, path: str) -> FileContent | None:
    """Return the content of the regular file at `at`, None for a folder or a missing file; `path` is for messages."""
    try:
        file = open_at(at)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _NO_REGULAR:
            raise
        status = status_at(at)
        if status is not None and stat.S_ISDIR(status.st_mode):
            return None
        raise WorkspaceError(f"{shown(path)} is not a regular file") from None
    with os.fdopen(file, "rb") as stream:
        status = os.fstat(file)
        if status.st_size > MAX_FILE_BYTES:
            raise too_large(path, status.st_size)
        return FileContent(stream.read(status.st_size), bool(status.st_mode & stat.S_IXUSR))


def open_at(at: OpenParent) -> int:
    """Return a descriptor for reading the regular file at `at`; raise `OSError` for anything else."""
    return open_regular(at.name, folder=at.folder)


def too_large(path: str, size: int) -> WorkspaceError:
    """Return the error for a file over the size limit."""
    return WorkspaceError(
        f"{shown(path)} has {size} bytes; the limit is {MAX_FILE_BYTES}",
        advice="if a command created it, add it to .gitignore",
    )


def prune_folders(root: str, paths: Iterable[str]) -> None:
    """Remove the parent folders of these paths that are empty now; `root` stays."""
    remove_empty(root, {parent for path in paths for parent in parents_of(path)})


def remove_empty(root: str, folders: Iterable[str]) -> None:
    """Remove those of the folders that are empty, the deepest first."""
    for folder in sorted(folders, key=len, reverse=True):
        # A folder that is not empty, missing, or not a folder is left alone.
        with suppress(OSError, WorkspaceError), open_parent(root, folder) as at:
            os.rmdir(at.name, dir_fd=at.folder)


def parents_of(path: str) -> list[str]:
    """Return the parent folders of `path`, the outermost first."""
    names = path.split("/")[:-1]
    return ["/".join(names[:count]) for count in range(1, len(names) + 1)]


def remove_tree(path: str) -> None:
    """Remove a folder with its content, as `system.folder_trees` does; raise `StorageError`."""
    try:
        removal.remove_tree(path)
    except OSError as error:
        raise storage_error(f"{shown(path, 500)} cannot be removed", error) from error


def linkable_names(names: Sequence[str], checkout: str, tracked: Mapping[str, TreeEntry]) -> tuple[str, ...]:
    """Return the names to link: those that the checkout has, and that are in no other one.

    Raises `WorkspaceError` for a name that cannot be linked: one outside the repository, one with a tracked file at or
    below it, and a submodule that was not initialised.
    """
    found: list[str] = []
    for name in sorted(dict.fromkeys(name.removesuffix("/") for name in names)):
        check_inside(name)
        if status_below(checkout, name) is None or any(name.startswith(f"{other}/") for other in found):
            continue
        _check_linkable(name, checkout, tracked)
        found.append(name)
    return tuple(found)


def _check_linkable(name: str, checkout: str, tracked: Mapping[str, TreeEntry]) -> None:
    inside = next((path for path in tracked if path == name or path.startswith(f"{name}/")), None)
    if inside is None:
        return
    if inside != name or tracked[name].mode != GITLINK:
        held = "git tracks it" if inside == name else f"git tracks {shown(inside)} in it"
        raise WorkspaceError(
            f"{shown(name)} cannot be linked: {held}, so the workspace has its own",
            advice="remove it from workspace.link, which is for ignored files and submodules",
        )
    if status_below(checkout, f"{name}/.git") is None:
        raise WorkspaceError(
            f"{shown(name)} cannot be linked: the submodule has no files in {checkout}",
            advice=f"`git submodule update --init {shlex.quote(name)}` brings them",
        )


def make_links(names: Sequence[str], checkout: str, root: str, *, by_force: bool = False) -> None:
    """Make each name in `root` a link to the same name in the checkout; raise `WorkspaceError` if the name is taken.

    `by_force` removes the obstacle, which a command put there.
    """
    for name in names:
        target = f"{checkout}/{name}"
        try:
            with open_parent(root, name, made=[]) as at:
                if is_link(at.folder, at.name):
                    if os.readlink(at.name, dir_fd=at.folder) == target:
                        continue
                    os.unlink(at.name, dir_fd=at.folder)
                elif by_force:
                    remove_tree(f"{root}/{name}")
                else:
                    # The empty folder of a submodule.
                    with suppress(OSError):
                        os.rmdir(at.name, dir_fd=at.folder)
                if status_at(at) is not None:
                    raise WorkspaceError(
                        f"{shown(name)} cannot be linked: the workspace has a file or folder of that name",
                        advice="remove it from workspace.link",
                    )
                os.symlink(target, at.name, dir_fd=at.folder)
        except OSError as error:
            raise storage_error(f"{shown(name)} cannot be linked to {target}", error) from error


def linked_names(root: str, checkout: str) -> tuple[str, ...]:
    """Return the names in a worktree that are links to the same name in the checkout, as `make_links` makes them."""
    found = []
    for where, folders, files in os.walk(root):
        for path in (f"{where}/{name}" for name in (*folders, *files)):
            name = path.removeprefix(f"{root}/")
            if os.path.islink(path) and os.readlink(path) == f"{checkout}/{name}":  # noqa: PTH114, PTH115 - as the walk
                found.append(name)
    return tuple(found)
