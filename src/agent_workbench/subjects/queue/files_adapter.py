"""Files of a queue in the user's checkout and their names: queued ones, and ended ones in their folders.

No link is followed, no name replaced.
"""

import errno
import os
import secrets
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePath

from agent_workbench.core.errors import StorageError
from agent_workbench.core.task_result import RESULT_SUFFIX
from agent_workbench.system.atomic_files import storage_error, sync_file, write_all
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import open_regular

MAX_BYTES = 1_000_000
MAX_NAMES = 1000
IGNORE, IGNORE_ALL = ".gitignore", b"# Written by `agent worker`: queued tasks are no part of the repository.\n*\n"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV, errno.EISDIR}

MAX_NAME_BYTES = 200
SUFFIXES = (".yaml", ".yml")


class UnreadableFile(Exception):
    """A file in the queue that cannot be a task's; `str` completes the sentence "the file …"."""


class QueueFiles:
    """The folder `parts` below `root`. All calls block and may raise `StorageError`."""

    def __init__(self, root: Path, parts: tuple[str, ...]) -> None:
        self._root = root
        self._parts = parts

    @property
    def shown(self) -> str:
        """Path of the folder, relative to the root."""
        return "/".join(self._parts)

    def exists(self) -> bool:
        """Return True if the folder is there."""
        with self._open() as folder:
            return folder is not None

    def names(self) -> list[str]:
        """Return the names of the files that are queued, sorted; none without the folder."""
        with self._open() as folder:
            found = _listed(folder) if folder is not None else []
        return sorted(name for name in found if name.endswith(SUFFIXES) and not name.startswith("."))

    def mark(self) -> int:
        """Return a number that changes when a file is added or removed; 0 without the folder."""
        with self._open() as folder:
            return os.fstat(folder).st_mtime_ns if folder is not None else 0

    def in_other_repo(self) -> bool:
        """Return True if a repository of its own, below the root, holds the folder."""
        folder = self._root
        for part in self._parts:
            folder = folder / part
            if os.path.lexists(folder / ".git"):
                return True
        return False

    def fingerprint(self, name: str) -> tuple[int, ...]:
        """Return what changes with the content of a queued file; empty if it is gone."""
        with self._open() as folder, suppress(FileNotFoundError):
            if folder is not None:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)
        return ()

    def read(self, name: str) -> bytes | None:
        """Return the content of a queued file, None if it is gone; raise `UnreadableFile`."""
        with self._open() as folder:
            return _read(folder, name) if folder is not None else None

    def create(self, name: str, data: bytes) -> bool:
        """Write a new queued file whole and durably; return False and change nothing if there is one."""
        with self._created() as folder:
            self._ignore(folder)
            return self._write_new(folder, name, data)

    def open_lock(self, name: str) -> int:
        """Return the descriptor of a file for a lock, which is made if it is missing; no link is followed."""
        with self._created() as folder:
            self._ignore(folder)
            try:
                return open_regular(name, os.O_RDWR | os.O_CREAT, folder=folder)
            except OSError as error:
                raise storage_error(f"{self.shown}/{name} could not be opened", error) from error

    def has_any(self, stem: str) -> bool:
        """Return True if a file with this name and one of the suffixes is queued or has ended."""
        for end in ("", "done", "failed"):
            with self._open(end) as folder:
                if folder is not None and any(_exists(folder, stem + suffix) for suffix in SUFFIXES):
                    return True
        return False

    def remove(self, name: str) -> None:
        """Remove a queued file durably; one that is gone is no error. Raises `StorageError`."""
        check_record(self._root.joinpath(*self._parts))
        with self._open() as folder:
            if folder is not None:
                try:
                    os.unlink(name, dir_fd=folder)
                    os.fsync(folder)
                except FileNotFoundError:
                    return
                except OSError as error:
                    raise storage_error(f"{self.shown}/{name} could not be removed", error) from error

    def file_away(self, end: str, name: str, stored: str, definition: bytes | None, result: str) -> str:
        """Move the queued file `name` to the folder `end`, with its result beside it; return its path there.

        It gets the name `stored`, with a number if that is taken. It is moved if it still has the content `definition`
        (None: whatever it is), else the definition is written there. Called again after a crash it goes on.
        """
        suffix = PurePath(stored).suffix
        stem = stored.removesuffix(suffix)
        with self._created() as folder, self._created(end) as target:
            for number in range(1, MAX_NAMES):
                slot = stem if number == 1 else f"{stem}-{number}"
                if self._file_in_slot(folder, target, name, (slot, suffix), definition, result):
                    return f"{end}/{slot}{suffix}"
        raise StorageError(f"{self.shown}/{end} has {MAX_NAMES} files named {stem}", advice="move old files away")

    def _file_in_slot(
        self, folder: int, target: int, name: str, slot: tuple[str, str], definition: bytes | None, result: str
    ) -> bool:
        """Do what `file_away` does with one name; return False if somebody else has it."""
        stored, beside = "".join(slot), slot[0] + RESULT_SUFFIX
        ours = _has_content(target, beside, result.encode()) if result else False
        if _exists(target, beside) and not ours:
            return False
        present = _exists(folder, name)
        if _exists(target, stored) and not (ours or (present and _is_same(folder, name, target, stored))):
            return False
        if result and not ours and not self._write_new(target, beside, result.encode()):
            return False
        moved = present and (definition is None or _has_content(folder, name, definition))
        try:
            if moved:
                _move(folder, name, target, stored)
            elif definition is not None and not _exists(target, stored):
                self._write_new(target, stored, definition)
            os.fsync(target)
            os.fsync(folder)
        except FileExistsError:
            return False
        except OSError as error:
            raise storage_error(f"{self.shown}/{name} could not be moved", error) from error
        return True

    def _ignore(self, folder: int) -> None:
        """Keep git from listing what is in the folder, unless the user has rules of their own there."""
        if not _exists(folder, IGNORE):
            self._write_new(folder, IGNORE, IGNORE_ALL)

    def _write_new(self, folder: int, name: str, data: bytes) -> bool:
        fresh = f".{secrets.token_hex(8)}.tmp"
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
            try:
                write_all(descriptor, data)
                sync_file(descriptor)
            finally:
                os.close(descriptor)
            _move(folder, fresh, folder, name)
            os.fsync(folder)
        except FileExistsError:
            return False
        except OSError as error:
            raise storage_error(f"{self.shown}/{name} could not be written", error) from error
        finally:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=folder)
        return True

    @contextmanager
    def _created(self, below: str = "") -> Iterator[int]:
        """Open the folder, or one below it, which is made if it is not there; raise `TrustError` in a command."""
        check_record(self._root.joinpath(*self._parts))
        with self._open(below, create=True) as folder:
            if folder is None:
                raise StorageError(f"{self.shown} was removed by another program", advice="try again")
            yield folder

    @contextmanager
    def _open(self, below: str = "", *, create: bool = False) -> Iterator[int | None]:
        """Open the folder, or one below it; None if it is not there. Raises `StorageError` for a link in its path."""
        try:
            descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(f"{self._root} could not be opened", error) from error
        try:
            found = True
            for part in filter(None, (*self._parts, below)):
                inner = self._enter(descriptor, part, create=create)
                if inner is None:
                    found = False
                    break
                os.close(descriptor)
                descriptor = inner
            yield descriptor if found else None
        finally:
            os.close(descriptor)

    def _enter(self, folder: int, part: str, *, create: bool) -> int | None:
        try:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
                    os.fsync(folder)
            return os.open(part, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                advice = f"make {part!r} in it a folder of its own"
                raise StorageError(f"{self.shown} is no folder of this repository", advice=advice) from error
            raise storage_error(f"{self.shown} could not be opened", error) from error


def _listed(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _read(folder: int, name: str) -> bytes | None:
    try:
        with os.fdopen(open_regular(name, folder=folder), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EISDIR}:
            raise UnreadableFile("is not a regular file") from error
        if error.errno == errno.EACCES:
            raise UnreadableFile("could not be read: permission denied") from error
        raise storage_error(f"{name} could not be read", error) from error
    if len(data) > MAX_BYTES:
        raise UnreadableFile(f"has more than {MAX_BYTES} bytes")
    return data


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(f"{name} could not be examined", error) from error
    return True


def _is_same(folder: int, name: str, target: int, stored: str) -> bool:
    one = os.stat(name, dir_fd=folder, follow_symlinks=False)
    other = os.stat(stored, dir_fd=target, follow_symlinks=False)
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _has_content(folder: int, name: str, data: bytes) -> bool:
    with suppress(UnreadableFile):
        return _read(folder, name) == data
    return False


def _move(folder: int, name: str, target: int, stored: str) -> None:
    """Rename without replacing; raise `FileExistsError` for a name that is taken by another file."""
    try:
        os.link(name, stored, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
    except FileExistsError:
        if not _is_same(folder, name, target, stored):
            raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Folders, and file systems without hard links. Workers exclude each other by the queue's lock.
        if _exists(target, stored):
            raise FileExistsError(errno.EEXIST, "exists", stored) from error
        os.rename(name, stored, src_dir_fd=folder, dst_dir_fd=target)
        return
    # Its writer may have put another file in its place meanwhile.
    if _is_same(folder, name, target, stored):
        os.unlink(name, dir_fd=folder)


def stem_of(name: str) -> str:
    """Return a name without its suffix."""
    return PurePath(name).stem


def key_of(name: str) -> str:
    """Return what two names of one task have in common."""
    return folded(stem_of(name) if name.endswith(SUFFIXES) else name)


def folded(name: str) -> str:
    """Return a name as a file system that ignores case and Unicode form compares it."""
    return unicodedata.normalize("NFC", name).casefold()


def name_problem(name: str) -> str:
    """Return why a queued file cannot have this name, empty if it can; it completes "the name …"."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "is not UTF-8"
    if size > MAX_NAME_BYTES:
        return f"has more than {MAX_NAME_BYTES} bytes"
    if "/" in name or name.startswith("."):
        return "begins with a dot or has a slash"
    return "" if name.isprintable() else "has characters that cannot be printed"


def shown_name(name: str) -> str:
    """Return a name for a message and a document."""
    return "".join(each if each.isprintable() else "?" for each in name)[:MAX_NAME_BYTES]


def stored_name(name: str) -> str:
    """Return the name that a refused file gets: its own, unless that is odd."""
    if not name_problem(name):
        return name
    digest = sha256(os.fsencode(name)).hexdigest()[:8]
    plain = "".join(each if each.isascii() and each.isprintable() and each != "/" else "_" for each in stem_of(name))
    return f"{plain.lstrip('.')[:40]}-{digest}{PurePath(name).suffix}"
