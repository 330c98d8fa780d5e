"""Finder of changed files, in batches: by a watch that reports them, or by the status of every file."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.source_languages import find_language, language_of
from agent_workbench.adapters.retrieval.indexable_files import (
    ExcludedPaths,
    FileStamp,
    count_submodules,
    stamp_files,
    within_bounds,
)
from agent_workbench.system.folder_watch import FolderWatch, WatchLost

# A batch is a fraction of a second of work: finished files are soon searchable, and a cancelled update soon ends.
_BATCH_FILES = 256
_BATCH_BYTES = 512 * 1024

# Folders without a listed file are empty or ignored; an empty one may get files. Of ignored ones there may be many.
_MAX_UNLISTED_FOLDERS = 256
_MAX_UNLISTED_FILES = 10_000
# A watch misses what is written through a mapping that stays open, or through a hard link in another folder.
_TRUSTED_SECONDS = 30.0
_GIT, _GIT_INDEX, _IGNORE_RULES = ".git", ".git/index", ".gitignore"


class ChangedFiles(Struct, frozen=True):
    """Paths to read, the stamps of all files, and the number of files and submodules that are left out."""

    paths: tuple[str, ...]
    stamps: Mapping[str, FileStamp]
    left_out: int
    submodules: int

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(self.stamps[path].size for path in self.paths)


class FileQueue:
    """Changed files that wait to be read, source code first; `wait` tells when one batch more was indexed."""

    def __init__(self, changes: ChangedFiles) -> None:
        ordered = sorted(changes.paths, key=lambda path: find_language(language_of(path)) is None)
        self._waiting = dict.fromkeys(ordered)
        self._taken: set[str] = set()
        self._stamps = changes.stamps
        self._step = asyncio.Event()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Files that no batch had yet, in their order."""
        return tuple(self._waiting)

    def put_first(self, paths: Iterable[str]) -> None:
        """Move these files to the front, in their order, as far as they wait."""
        first = dict.fromkeys(path for path in paths if path in self._waiting)
        self._waiting = first | self._waiting

    def holds(self, paths: Iterable[str]) -> bool:
        """Return True if one of these files is not indexed yet."""
        return any(path in self._waiting or path in self._taken for path in paths)

    async def wait(self) -> None:
        """Wait until another batch is indexed."""
        await self._step.wait()

    def finish(self, batch: Iterable[str]) -> None:
        """Take note that a batch is indexed."""
        self._taken.difference_update(batch)
        step, self._step = self._step, asyncio.Event()
        step.set()

    def __iter__(self) -> Iterator[Sequence[str]]:
        """Yield batches of bounded number and size; several callers share the files."""
        while self._waiting:
            batch: list[str] = []
            size = 0
            for path in self._waiting:
                batch.append(path)
                size += self._stamps[path].size
                if len(batch) == _BATCH_FILES or size >= _BATCH_BYTES:
                    break
            for path in batch:
                del self._waiting[path]
            self._taken.update(batch)
            yield batch


class ChangeFinder:
    """Stamps of a folder's files, and what changed since they were taken. Methods block; one caller at a time.

    `stamps` are those of all files that were read; the caller enters a file when it has read it.
    """

    def __init__(self, root: str, exclude: Collection[str]) -> None:
        self.stamps: dict[str, FileStamp] = {}
        self._root = root
        self._excluded = ExcludedPaths(exclude)
        self._found: dict[str, FileStamp] = {}
        self._submodules = 0
        self._watch: FolderWatch | None = None
        self._is_unwatchable = False
        # Files that changed and are not listed: ignored ones, such as logs, change often.
        self._unlisted: set[str] = set()
        self._checked = 0.0
        self._is_settled = False

    @property
    def is_due(self) -> bool:
        """True if the status of every file should be compared again."""
        return time.monotonic() - self._checked > _TRUSTED_SECONDS

    def watched(self) -> ChangedFiles | None:
        """Return the changes that the watch reports; None if the files must be listed and compared."""
        if self._watch is None or not self._is_settled:
            return None
        try:
            changed = self._watch.changes()
            unlisted = {path for path in changed - self._found.keys() if self._may_be_listed(path)}
            self._watch.add(self._folders_below(sorted(unlisted)))
        except WatchLost:
            self.close()
            return None
        known = changed & self._found.keys()
        self._is_settled = not known and not unlisted
        if unlisted or any(path.rpartition("/")[2] == _IGNORE_RULES for path in known):
            self._unlisted.update(path for path in unlisted if not self._is_folder(path))
            return None
        if not known:
            return ChangedFiles((), self.stamps, self._left_out(self.stamps), self._submodules)
        found = {path: stamp for path, stamp in self._found.items() if path not in known}
        found |= stamp_files(self._root, sorted(known), self._excluded, time.time_ns())
        return self._compared(found)

    def compared(self, paths: Sequence[str]) -> ChangedFiles:
        """Return the changes among all `paths` that the folder has, by the status of each."""
        self._checked = time.monotonic()
        self._is_settled = False
        self._unlisted.difference_update(paths)
        if len(self._unlisted) > _MAX_UNLISTED_FILES:
            self._unlisted.clear()
        self._submodules = count_submodules(self._root)
        return self._compared(stamp_files(self._root, paths, self._excluded, time.time_ns(), self.stamps))

    def watch(self, paths: Sequence[str]) -> bool:
        """Watch the folders of all `paths`; return True if the files must be listed again, for some may be new.

        The first call only remembers that there was one: a process that searches once needs no watch.
        """
        if self._is_unwatchable or not self._checked:
            return False
        folders = _folders_of(paths)
        try:
            if self._watch is None:
                self._watch = FolderWatch(self._root)
                folders = [*folders, *self._folders_beside(folders)]
            return self._watch.add(folders)
        except WatchLost:
            self.close()
            self._is_unwatchable = True
            return False

    def close(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def settle(self) -> None:
        """Take note that the changes returned last are read; until then all files are compared again."""
        self._is_settled = True

    def forget(self, paths: Iterable[str]) -> None:
        """Drop the stamps of these files, so that they are read again."""
        for path in paths:
            self.stamps.pop(path, None)

    def _compared(self, found: dict[str, FileStamp]) -> ChangedFiles:
        self._found = found
        stamps = within_bounds(found)
        changed = (path for path, stamp in stamps.items() if self.stamps.get(path) is not stamp)
        return ChangedFiles(tuple(changed), stamps, self._left_out(stamps), self._submodules)

    def _left_out(self, stamps: Mapping[str, FileStamp]) -> int:
        return len(self._found) - len(stamps)

    def _may_be_listed(self, path: str) -> bool:
        """Return True if a path that was not listed may be now."""
        if path == _GIT or path.startswith(f"{_GIT}/"):
            return path == _GIT_INDEX
        if path in self._unlisted:
            return self._is_folder(path)
        return path not in self._excluded and os.path.lexists(f"{self._root}/{path}")

    def _is_folder(self, path: str) -> bool:
        # A Path of each would take longer than the call.
        return os.path.isdir(f"{self._root}/{path}")  # noqa: PTH112

    def _folders_beside(self, folders: Collection[str]) -> Iterator[str]:
        """Yield folders below these that have no listed file, the nearest first, at most some."""
        known = set(folders)
        children = (child for folder in folders for child in self._children(folder) if child not in known)
        yield from self._folders_below(children)
        if self._is_folder(_GIT):
            yield _GIT

    def _folders_below(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield those of the paths that are folders, and the folders below them, at most some."""
        queue = deque(paths)
        for _ in range(_MAX_UNLISTED_FOLDERS):
            if not queue:
                return
            path = queue.popleft()
            if self._is_folder(path):
                yield path
                queue.extend(self._children(path))

    def _children(self, folder: str) -> list[str]:
        try:
            with os.scandir(f"{self._root}/{folder}") as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        return [f"{folder}/{name}" if folder else name for name in names if name != _GIT]


def _folders_of(paths: Iterable[str]) -> list[str]:
    """Return the folders of these files and the folders around them, the root (empty) included."""
    found = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found)
