"""Saved index of a folder with the stamps of its files."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.retrieval.chunking.chunk_cache import FORMAT
from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex
from agent_workbench.adapters.retrieval.index.workspace_index import WorkspaceIndex
from agent_workbench.adapters.retrieval.indexer.indexable_files import FileStamp
from agent_workbench.adapters.retrieval.indexer.saved_stamps import decode_stamps, encode_stamps
from agent_workbench.core.settings import RetrievalSettings


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


def save(path: Path, saved: SavedIndex, settings: RetrievalSettings) -> int:
    """Save the index; return its size, 0 if it is too large to be kept. Blocks. Raises `StorageError`."""
    view = saved.index.view
    return saved.index.save(path, encode_stamps(saved.stamps, view.paths(), _header(settings)))


def _header(settings: RetrievalSettings) -> dict[str, str]:
    return {"max_tokens": str(settings.max_chunk_tokens), "format": str(FORMAT)}
