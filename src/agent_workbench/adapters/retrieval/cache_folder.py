"""Cache folder of the code search: paths of what it holds for each repo, its size, its bounds, and its removal."""

import json
import os
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.vector_worker import LOCK
from agent_workbench.core.errors import StorageError
from agent_workbench.core.repo.retrieval import CacheFacts, SnapshotFacts
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.folder_trees import read_regular
from agent_workbench.system.locks import lock_holder
from agent_workbench.system.user_dirs import repo_key

SNAPSHOTS = "snapshots"
HISTORY = "history"
VECTORS = "vectors"
_KINDS = (SNAPSHOTS, HISTORY, VECTORS)
MAX_SNAPSHOT_BYTES = 400 * 1024 * 1024
# For all repos except the current one.
MAX_SHARED_BYTES = 400 * 1024 * 1024
_SNAPSHOT, _ROOT = ".index", ".json"
_MAX_NOTE_BYTES = 100_000
# Older formats are kept this long, for users who go back to an older version of the workbench.
_FORGOTTEN_SECONDS = 30 * 86_400


class CacheFolder:
    """The cache in one folder. Blocks; safe for threads and processes. Unreadable files count as absent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def snapshot_of(self, root: str) -> Path:
        """Return the path of the saved index of the folder `root`."""
        return self._of_repo(SNAPSHOTS, root) / (sha256(os.fsencode(root)).hexdigest()[:16] + _SNAPSHOT)

    def siblings_of(self, root: str) -> list[Path]:
        """Return the paths of the saved indexes of other folders of the same repo, newest first."""
        own = self.snapshot_of(root)
        found = [path for path in own.parent.glob(f"*{_SNAPSHOT}") if path != own]
        return sorted(found, key=_modified, reverse=True)

    def history_of(self, root: str) -> Path:
        """Return the path of the saved commits of the repo of the folder `root`."""
        return self._of_repo(HISTORY, root).with_suffix(".json.gz")

    def vectors_of(self, root: str) -> Path:
        """Return the folder for the vectors of the repo of the folder `root`."""
        return self._of_repo(VECTORS, root)

    def make_private(self) -> None:
        """Make the folder, readable for its user only: it holds the words of all indexed code."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._folder.stat().st_mode & 0o077:
                self._folder.chmod(0o700)

    def note(self, root: str) -> None:
        """Write the folder's name beside its saved index; remove the oldest indexes and those of missing folders."""
        path = self.snapshot_of(root).with_suffix(_ROOT)
        # A missing note affects only the list of what the cache holds.
        with suppress(OSError):
            path.write_bytes(json.dumps(root).encode())
        left = MAX_SNAPSHOT_BYTES
        for each in sorted(self._snapshots(), key=_modified, reverse=True):
            left -= _size(each)
            named = _root_of(each)
            if left < 0 or (named and not Path(named).is_dir()):
                with suppress(OSError):
                    _remove_snapshot(each)
        self._forget_oldest({self.history_of(root), self.vectors_of(root)})

    def facts(self) -> CacheFacts:
        """Return the present content of the cache."""
        chunks = ChunkCache(self._folder)
        sizes = {"pieces": sum(_size(path) for path in self._folder.glob("chunks-*"))}
        for kind in _KINDS:
            sizes[kind] = sum(_size(path) for path in (self._folder / kind).rglob("*"))
        snapshots = tuple(
            SnapshotFacts(root, _size(path), _modified(path), Path(root).is_dir())
            for path in sorted(self._snapshots())
            if (root := _root_of(path))
        )
        writable = self._folder.is_dir() and os.access(self._folder, os.W_OK | os.X_OK)
        return CacheFacts(str(self._folder), sizes, chunks.count(), snapshots, writable)

    def clear(self, root: str = "") -> int:
        """Remove index, commits and vectors of the folder `root`, or the whole cache; return the removed bytes.

        Raises `StorageError`.
        """
        before = self.facts().total_bytes
        try:
            if root:
                _remove_snapshot(self.snapshot_of(root))
                _remove(self.history_of(root))
                _remove(self.vectors_of(root))
            else:
                for path in self._folder.glob("chunks-*"):
                    path.unlink(missing_ok=True)
                for kind in _KINDS:
                    _remove(self._folder / kind)
        except OSError as error:
            raise storage_error(f"the cache in {self._folder} could not be removed", error) from error
        return max(0, before - self.facts().total_bytes)

    def _forget_oldest(self, own: Collection[Path]) -> None:
        """Remove the commits and vectors of other repos, least recently changed first, and caches of older formats."""
        shared = [each for kind in (HISTORY, VECTORS) for each in (self._folder / kind).glob("*") if each not in own]
        left = MAX_SHARED_BYTES
        for each in sorted(shared, key=_changed_within, reverse=True):
            left -= sum(map(_size, (each, *each.rglob("*"))))
            if left < 0:
                with suppress(OSError, StorageError):
                    if each.is_file() or not lock_holder(each / LOCK):
                        _remove(each)
        current = ChunkCache(self._folder).path
        for each in self._folder.glob("chunks-*.sqlite"):
            if each != current and time.time() - _modified(each) > _FORGOTTEN_SECONDS:
                each.unlink(missing_ok=True)

    def _of_repo(self, kind: str, root: str) -> Path:
        return self._folder / kind / repo_key(_common_git_dir(root))

    def _snapshots(self) -> Iterator[Path]:
        return (self._folder / SNAPSHOTS).glob(f"*/*{_SNAPSHOT}")


def _common_git_dir(root: str) -> str:
    """Return the git folder that all worktrees of the repo share, or `root` itself without one."""
    entry = Path(root) / ".git"
    try:
        if entry.is_dir():
            return str(entry)
        own = Path(root, _line(entry).removeprefix("gitdir:").strip())
        common = own / "commondir"
        return str(own / _line(common)) if common.is_file() else str(own)
    except (OSError, ValueError):
        return root


def _line(path: Path) -> str:
    return os.fsdecode(read_regular(path, _MAX_NOTE_BYTES)).strip()


def _root_of(snapshot: Path) -> str:
    note = snapshot.with_suffix(_ROOT)
    try:
        root = json.loads(read_regular(note, _MAX_NOTE_BYTES))
    except (OSError, ValueError, RecursionError):
        return ""
    return root if isinstance(root, str) and "\0" not in root else ""


def _remove_snapshot(path: Path) -> None:
    for each in (path, path.with_suffix(_ROOT)):
        each.unlink(missing_ok=True)
    with suppress(OSError):  # other indexes of the repo are there
        path.parent.rmdir()


def _remove(path: Path) -> None:
    """Remove a file, folder or link if it is there; never the target of a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _changed_within(path: Path) -> float:
    """Return the last change of a file, or of a folder and its direct entries."""
    return max(map(_modified, (path, *path.glob("*"))))


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size if not path.is_dir() else 0
    except OSError:
        return 0


def _modified(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return time.time()
