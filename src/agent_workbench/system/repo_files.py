"""Small files inside a folder, read and changed without leaving it and without losing changes of other programs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_workbench.core.errors import StorageError
from agent_workbench.system.atomic_files import FileChanged, make_directories, storage_error, write_atomically
from agent_workbench.system.folder_trees import NotRegularError, open_regular
from agent_workbench.system.locks import lock_descriptor

LOCK_SECONDS = 10.0
_TRIES = 10
_MAX_NAMES = 1000
_GIT = ".git"


def resolve_inside(root: Path, name: str) -> Path:
    """Return the real path of `root/name`, which need not exist.

    Raises `StorageError` if it is outside `root`, or among git's own files there.
    """
    advice = "replace the link with the file itself"
    try:
        real, top = (root / name).resolve(), root.resolve()
        if not real.is_relative_to(top):
            raise StorageError(f"{name} leads to {real}, outside {root}", advice=advice)
        if any(part.lower() == _GIT for part in real.relative_to(top).parts):
            raise StorageError(f"{name} leads to {real}, which is git's own", advice=advice)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        raise storage_error(f"{name} could not be read", error) from error
    return real


def read_inside(root: Path, name: str, max_bytes: int) -> bytes | None:
    """Return the content of the regular file `root/name`, None if there is none. Blocks.

    Raises `StorageError` for a file that is not regular, longer than `max_bytes`, unreadable or outside `root`.
    """
    path = resolve_inside(root, name)
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            if (size := os.fstat(file.fileno()).st_size) > max_bytes:
                raise StorageError(f"{name} has {size} bytes; the limit is {max_bytes}", advice="make it shorter")
            return file.read(max_bytes)
    except FileNotFoundError:
        return None
    except NotRegularError as error:
        raise StorageError(f"{name} is not a regular file", advice="replace it with one, or remove it") from error
    except OSError as error:
        raise storage_error(f"{name} could not be read", error) from error


def change_inside(root: Path, name: str, max_bytes: int, change: Callable[[bytes | None], bytes | None]) -> None:
    """Replace the content of `root/name` with the result of `change`. Blocks.

    `change` gets the content (None: no file) and returns the new one (None: no change). One workbench at a time changes
    the files of a folder. If another program writes in between, `change` is called again with the new content. Raises
    `StorageError`, and any error of `change`.
    """
    path = resolve_inside(root, name)
    try:
        make_directories(path.parent)
    except OSError as error:
        raise storage_error(f"{path.parent} could not be created", error) from error
    with _locked(path.parent):
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
    raise StorageError(
        f"another program changed {name} {_TRIES} times in a row", advice="close that program, then try again"
    )


def create_inside(root: Path, data: bytes, max_bytes: int, name_with: Callable[[str], str]) -> str:
    """Write `data` to a new file below `root` and return its name: `name_with("")`, or with `"-2"`, `"-3"` and so on.

    A file that already has this content counts as written, as after a crash. Blocks. Raises `StorageError`.
    """
    for number in range(1, _MAX_NAMES):
        name = name_with("" if number == 1 else f"-{number}")
        change_inside(root, name, max_bytes, lambda found: data if found is None else None)
        if read_inside(root, name, max_bytes) == data:
            return name
    raise StorageError(f"{name_with('')} exists with {_MAX_NAMES} suffixes", advice="remove old files there")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # The folder itself is locked, so that the user's repo gets no lock file.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock_descriptor(descriptor, folder, LOCK_SECONDS)
        yield
    finally:
        os.close(descriptor)
