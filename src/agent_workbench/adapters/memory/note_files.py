"""Files of the notes: listed with stamps, read without following links, and written whole or not at all."""

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from agent_workbench.core.errors import StorageError
from agent_workbench.core.knowledge.notes import SUFFIX, KnowledgeNote
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.regular_files import NotRegularError, open_regular
from agent_workbench.system.repo_files import change_inside, resolve_inside

MAX_BYTES = 1_000_000
MAX_NOTES = 50_000
README = "README"
"""Name of the file that describes the folder; it is no note."""
Stamp = tuple[int, int, int, int]
"""Fields of a file's status that change with its content."""


class NoteFiles:
    """The files `*.md` directly in `folder`, which is relative to `root` and must not lead out of it. Blocks."""

    def __init__(self, root: Path, folder: str) -> None:
        self._root = root
        self.folder = folder
        self.missing = False

    def resolve(self) -> Path:
        """Return the real path of the folder; raise `StorageError` if it lies outside of the root."""
        return resolve_inside(self._root, self.folder)

    def listed(self) -> Iterator[tuple[str, Stamp]]:
        """Yield the names of the notes with their stamps, and set `missing`; raise `StorageError`."""
        folder = self.resolve()
        self.missing = False
        many = 0
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name.removesuffix(SUFFIX)
                    if name == entry.name or not _is_note(name):
                        continue
                    many += 1
                    if many > MAX_NOTES:
                        raise StorageError(
                            f"{self.folder} has more than {MAX_NOTES:,} notes", advice="move old ones elsewhere"
                        )
                    if (stamp := _stamp(partial(entry.stat, follow_symlinks=False))) is not None:
                        yield name, stamp
        except FileNotFoundError:
            self.missing = True
        except OSError as error:
            raise storage_error(f"{self.folder} cannot be read", error) from error

    def stamp(self, name: str) -> Stamp | None:
        """Return the stamp of one note, None if there is none."""
        return _stamp((self.resolve() / f"{name}{SUFFIX}").lstat) if _is_note(name) else None

    def read(self, name: str) -> KnowledgeNote | None:
        """Return a note, None if there is none; a link is never followed, whatever it leads to."""
        if not _is_base_name(name):
            return None
        path = self.resolve() / f"{name}{SUFFIX}"
        try:
            with os.fdopen(open_regular(path), "rb") as file:
                if (size := os.fstat(file.fileno()).st_size) > MAX_BYTES:
                    return KnowledgeNote(name, problem=f"has {size:,} bytes; the limit is {MAX_BYTES:,}")
                data = file.read(MAX_BYTES)
        except FileNotFoundError:
            return None
        except NotRegularError:
            return KnowledgeNote(name, problem="is not a regular file")
        except OSError as error:
            linked = path.is_symlink()
            return KnowledgeNote(name, problem="is a link" if linked else f"cannot be read: {error.strerror}")
        if b"\0" in data:
            return KnowledgeNote(name, problem="is not text")
        try:
            return KnowledgeNote(name, data.decode("utf-8"))
        except UnicodeDecodeError:
            return KnowledgeNote(name, problem="is not UTF-8")

    def write(self, note: KnowledgeNote, before: str | None) -> None:
        """Put a note's text in place of `before` (None: no such file); raise `StorageError` if that is not there."""
        path = f"{self.folder}/{note.name}{SUFFIX}"
        data = _encoded(path, note.text)
        expected = None if before is None else _encoded(path, before)

        def change(found: bytes | None) -> bytes | None:
            if found != expected:
                how = "was removed since it was read" if found is None else "was changed since it was read"
                if expected is None:
                    raise StorageError(f"{path} already exists", advice="edit that note, or give this one another name")
                raise StorageError(f"{path} {how}", advice="read it again, then edit it; nothing was written")
            if found is None:
                self._check_no_clash(note.name)
            return data

        if (self._root / path).is_symlink():
            raise StorageError(f"{path} is a link", advice="replace it with the file itself")
        change_inside(self._root, path, MAX_BYTES, change)

    def _check_no_clash(self, name: str) -> None:
        """Raise `StorageError` if a note's name differs from this one by case only: some disks tell them not apart."""
        clash = next((other for other, _ in self.listed() if other.casefold() == name.casefold()), "")
        if clash:
            raise StorageError(f"{self.folder} has a note {clash}{SUFFIX} already", advice="choose another name")


def _stamp(look: Callable[[], os.stat_result]) -> Stamp | None:
    """Return the stamp of a file; None for a folder, and for a file that is gone."""
    try:
        status = look()
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_note(name: str) -> bool:
    return name != README and not name.startswith(".") and _is_base_name(name)


def _is_base_name(name: str) -> bool:
    """Return True for a name without folders that can be shown and opened."""
    return bool(name) and "/" not in name and name not in {".", ".."} and name.isprintable()


def _encoded(path: str, text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StorageError(
            f"{path} cannot contain the character {text[error.start]!a}", advice="remove that character"
        ) from error
    if len(data) > MAX_BYTES or b"\0" in data:
        what = "a NUL character" if b"\0" in data else f"{len(data):,} bytes"
        raise StorageError(f"{path} would have {what}", advice=f"a note is text of at most {MAX_BYTES:,} bytes")
    return data
