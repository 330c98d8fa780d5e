"""Small files inside the user's repo, read and changed without leaving it and without losing what others wrote."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_workbench.core.errors import StorageError
from agent_workbench.system.atomic_files import FileChanged, make_directories, storage_error, write_atomically
from agent_workbench.system.locks import lock_descriptor
from agent_workbench.system.regular_files import NotRegularError, open_regular

LOCK_SECONDS = 10.0
_TRIES = 10


def resolve_inside(root: Path, name: str) -> Path:
    """Return the real path of `root/name`, which need not exist; raise `StorageError` where it is outside `root`."""
    try:
        real = (root / name).resolve()
        if not real.is_relative_to(root.resolve()):
            raise StorageError(f"{name} leads to {real}, outside the repo", advice="put the file itself in the repo")
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of symbolic links
        raise storage_error(f"{name} could not be read", error) from error
    return real


def read_inside(root: Path, name: str, max_bytes: int) -> bytes | None:
    """Return the content of the regular file `root/name`, None where there is none. Blocks.

    Raises `StorageError` for a file that is not regular, longer than `max_bytes`, unreadable or outside `root`.
    """
    path = resolve_inside(root, name)
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            if (size := os.fstat(file.fileno()).st_size) > max_bytes:
                raise StorageError(f"{name} has {size} bytes, {max_bytes} are read at most")
            return file.read(max_bytes)
    except FileNotFoundError:
        return None
    except NotRegularError as error:
        raise StorageError(f"{name} is not a regular file") from error
    except OSError as error:
        raise storage_error(f"{name} could not be read", error) from error


def change_inside(root: Path, name: str, max_bytes: int, change: Callable[[bytes | None], bytes | None]) -> None:
    """Replace `root/name` by what `change` makes of its content (None: no file yet; returned: leave it). Blocks.

    One workbench at a time changes a folder's files; when somebody else (an editor) writes in between, `change` is
    called again with what stands then. Raises `StorageError`, and whatever `change` raises.
    """
    path = resolve_inside(root, name)
    try:
        make_directories(path.parent)
    except OSError as error:
        raise storage_error(f"{path.parent} could not be made", error) from error
    with _alone_in(path.parent):
        for _ in range(_TRIES):
            before = read_inside(root, name, max_bytes)
            after = change(before)
            if after is None or after == before:
                return
            try:
                write_atomically(path, after, expected=before)
            except FileChanged:
                continue
            return
    raise StorageError(f"{name} is being changed by somebody else all the time", advice="try again")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    # The folder itself is locked, so that no lock file lies about in the user's repo.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock_descriptor(descriptor, folder, LOCK_SECONDS)
        yield
    finally:
        os.close(descriptor)
