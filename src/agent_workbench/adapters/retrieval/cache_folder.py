"""The folder in which all that retrieval can make again is kept: what is in it, for whom, and how it is bounded."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agent_workbench.adapters.retrieval.cache import PieceCache
from agent_workbench.host.atomic import storage_error
from agent_workbench.host.paths import repo_key

SNAPSHOTS = "snapshots"
HISTORY = "history"
VECTORS = "vectors"
_KINDS = (SNAPSHOTS, HISTORY, VECTORS)
MAX_SNAPSHOT_BYTES = 400 * 1024 * 1024
_SNAPSHOT, _ROOT = ".index", ".json"
_MOST_NOTE_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """The saved index of one folder: its size, when it was `saved` (since the epoch), whether the folder exists."""

    root: str
    bytes: int
    saved: float
    there: bool


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """What the cache holds. `blobs` are contents of files that need not be parsed again."""

    folder: str
    bytes_by_kind: Mapping[str, int]
    blobs: int
    snapshots: tuple[SnapshotFacts, ...]

    @property
    def total_bytes(self) -> int:
        """Return the size of all of it."""
        return sum(self.bytes_by_kind.values())


class CacheFolder:
    """Blocks; for any thread and process. What cannot be read counts as nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def snapshot_of(self, root: str) -> Path:
        """Return where the index of the folder `root` is saved."""
        return self._of_repo(SNAPSHOTS, root) / (sha256(os.fsencode(root)).hexdigest()[:16] + _SNAPSHOT)

    def siblings_of(self, root: str) -> list[Path]:
        """Return where the indexes of other folders of the same repo are saved, the newest first."""
        own = self.snapshot_of(root)
        found = [path for path in own.parent.glob(f"*{_SNAPSHOT}") if path != own]
        return sorted(found, key=_modified, reverse=True)

    def history_of(self, root: str) -> Path:
        """Return where the past of the repo of the folder `root` is kept."""
        return self._of_repo(HISTORY, root).with_suffix(".json.gz")

    def vectors_of(self, root: str) -> Path:
        """Return the folder for the vectors of the repo of the folder `root`."""
        return self._of_repo(VECTORS, root)

    def note(self, root: str) -> None:
        """Write beside the index of `root` whose it is; forget indexes of folders that are gone, and the oldest."""
        path = self.snapshot_of(root).with_suffix(_ROOT)
        # Without the note nothing but the cache's list of what it holds is less than whole.
        with suppress(OSError):
            path.write_bytes(json.dumps(root).encode())
        left = MAX_SNAPSHOT_BYTES
        for each in sorted(self._snapshots(), key=_modified, reverse=True):
            left -= _size(each)
            named = _root_of(each)
            if left < 0 or (named and not Path(named).is_dir()):
                _remove_snapshot(each)

    def facts(self) -> CacheFacts:
        """Return what is kept now."""
        pieces = PieceCache(self._folder)
        sizes = {"pieces": sum(_size(path) for path in self._folder.glob("chunks-*"))}
        for kind in _KINDS:
            sizes[kind] = sum(_size(path) for path in (self._folder / kind).rglob("*"))
        snapshots = tuple(
            SnapshotFacts(root, _size(path), _modified(path), Path(root).is_dir())
            for path in sorted(self._snapshots())
            if (root := _root_of(path))
        )
        return CacheFacts(str(self._folder), sizes, pieces.count(), snapshots)

    def clear(self, root: str = "") -> int:
        """Remove what is kept for the folder `root`, or everything; return how many bytes. Raises `StorageError`."""
        before = self.facts().total_bytes
        try:
            if root:
                _remove_snapshot(self.snapshot_of(root))
            else:
                for path in self._folder.glob("chunks-*"):
                    path.unlink(missing_ok=True)
                for kind in _KINDS:
                    if (self._folder / kind).is_dir():
                        shutil.rmtree(self._folder / kind)
        except OSError as error:
            raise storage_error(f"the cache in {self._folder} could not be removed", error) from error
        return max(0, before - self.facts().total_bytes)

    def _of_repo(self, kind: str, root: str) -> Path:
        return self._folder / kind / repo_key(_common_git_dir(root))

    def _snapshots(self) -> Iterator[Path]:
        return (self._folder / SNAPSHOTS).glob(f"*/*{_SNAPSHOT}")


def _common_git_dir(root: str) -> str:
    """Return the git folder that all worktrees of the repo share; `root` itself where it has none."""
    entry = Path(root) / ".git"
    try:
        if entry.is_dir():
            return str(entry)
        own = Path(root, entry.read_text().removeprefix("gitdir:").strip())
        common = own / "commondir"
        return str(own / common.read_text().strip()) if common.is_file() else str(own)
    except (OSError, ValueError):
        return root


def _root_of(snapshot: Path) -> str:
    note = snapshot.with_suffix(_ROOT)
    try:
        root = json.loads(note.read_bytes()) if _size(note) < _MOST_NOTE_BYTES else ""
    except (OSError, ValueError):
        return ""
    return root if isinstance(root, str) and "\0" not in root else ""


def _remove_snapshot(path: Path) -> None:
    for each in (path, path.with_suffix(_ROOT)):
        each.unlink(missing_ok=True)
    with suppress(OSError):  # others of the repo are there
        path.parent.rmdir()


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
