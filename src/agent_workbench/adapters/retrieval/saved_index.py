"""Saved index of a folder, with the serialized stamps of its files."""

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.adapters.retrieval.index.chunk_cache import FORMAT
from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex
from agent_workbench.adapters.retrieval.index.workspace_index import WorkspaceIndex
from agent_workbench.adapters.retrieval.indexable_files import (
    ExcludedPaths,
    FileStamp,
    count_left_out,
    count_submodules,
)
from agent_workbench.core.repo.retrieval import IndexStatus
from agent_workbench.core.settings import RetrievalSettings

# Raise it whenever the kinds of files, or the files that are left out, change.
_KINDS = "2"

# Flag for a stamp that is equal to no later one, because the file may change at the same time stamp.
_NUMBERS = 4
_NEVER = -1


class SavedIndex(Struct, frozen=True):
    """Index and the `stamps` of all files that were read for it; files not in the index are no text."""

    index: WorkspaceIndex
    stamps: Mapping[str, FileStamp]


def load_saved(path: Path, settings: RetrievalSettings) -> SavedIndex | None:
    """Return the index saved with equal settings, None if it cannot be used. Blocks."""
    try:
        index, extra = WorkspaceIndex.load(path)
    except DamagedIndex:
        return None
    stamps = decode_stamps(extra, list(index.view.paths()), _header(settings))
    return None if stamps is None else SavedIndex(index, stamps)


def saved_status(root: str, paths: Sequence[str], settings: RetrievalSettings, cache: CacheFolder) -> IndexStatus:
    """Return the contents of the saved index of `root`, and how many of its `paths` are left out. Blocks."""
    saved = load_saved(cache.snapshot_of(root), settings)
    status = IndexStatus(
        left_out=count_left_out(root, paths, ExcludedPaths(settings.exclude)), submodules=count_submodules(root)
    )
    if saved is None:
        return status
    view = saved.index.view
    return replace(status, files=view.files, chunks=view.chunks, binary=len(saved.stamps) - view.files)


def save(path: Path, saved: SavedIndex, settings: RetrievalSettings) -> int:
    """Save the index; return its size, 0 if it is too large to be kept. Blocks. Raises `StorageError`."""
    view = saved.index.view
    return saved.index.save(path, encode_stamps(saved.stamps, view.paths(), _header(settings)))


def _header(settings: RetrievalSettings) -> dict[str, str]:
    return {"max_tokens": str(settings.max_chunk_tokens), "format": str(FORMAT), "kinds": _KINDS}


def encode_stamps(stamps: Mapping[str, FileStamp], indexed: Iterable[str], header: Mapping[str, str]) -> bytes:
    """Return the stamps as bytes; paths that are `indexed` are not stored again."""
    first = [path for path in indexed if path in stamps]
    known = set(first)
    others = [path for path in stamps if path not in known]
    numbers = array("q")
    for path in (*first, *others):
        each = stamps[path]
        numbers.extend((each.modified_ns, each.changed_ns, _NEVER if each.fresh else each.size, each.inode))
    head = json.dumps([dict(header), len(first), others]).encode()
    return len(head).to_bytes(4, "little") + head + numbers.tobytes()


def decode_stamps(data: bytes, indexed: Sequence[str], header: Mapping[str, str]) -> dict[str, FileStamp] | None:
    """Return the encoded stamps; None if they were encoded with another header or for other indexed files."""
    size = int.from_bytes(data[:4], "little")
    try:
        stored, count, others = json.loads(data[4 : 4 + size])
        numbers = array("q", data[4 + size :])
    except (ValueError, TypeError, RecursionError):
        return None
    if stored != dict(header) or count != len(indexed) or not isinstance(others, list):
        return None
    paths = [*indexed, *others]
    if len(numbers) != _NUMBERS * len(paths) or not all(type(path) is str for path in others):
        return None
    rows = zip(*(numbers[place::_NUMBERS] for place in range(_NUMBERS)), strict=True)
    return {
        path: FileStamp(modified, changed, size, inode)
        for path, (modified, changed, size, inode) in zip(paths, rows, strict=True)
    }
