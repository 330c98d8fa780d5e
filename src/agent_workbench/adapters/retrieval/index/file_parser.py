"""Parser of files: divides them into chunks and builds their segment, in a worker process or a thread."""

import threading
from collections.abc import Collection, Mapping

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk, Outline, chunk_text, markdown_outline
from agent_workbench.adapters.retrieval.index.file_kinds import kind_of
from agent_workbench.adapters.retrieval.index.segments import Segment, SourceFile, blob_id
from agent_workbench.adapters.retrieval.index.source_languages import find_language, language_of
from agent_workbench.adapters.retrieval.index.syntax import OutlineParser


class Stopped(Exception):
    """The work was cancelled by its caller."""


class ParsedBatch(Struct, frozen=True):
    """Segment of some files, and the number of those that no cache knew."""

    segment: Segment
    parsed: int


class FileParser:
    """Divides files into chunks, unless the cache has those of the same content. One batch at a time."""

    def __init__(self, cache: ChunkCache, max_tokens: int) -> None:
        self._cache = cache
        self._max_tokens = max_tokens
        self._syntax = OutlineParser()
        self._run_search = threading.Lock()

    def index(self, files: Mapping[str, bytes], stop: threading.Event | None = None) -> ParsedBatch:
        """Return a segment of the files (path to content); raise `Stopped` when `stop` is set meanwhile."""
        blobs = {path: blob_id(data) for path, data in files.items()}
        keys = {path: f"{blob}:{language_of(path)}:{self._max_tokens}" for path, blob in blobs.items()}
        with self._run_search:
            known = self._cache.find(keys.values())
            missing = {key: path for path, key in keys.items() if key not in known}
            known |= self._chunk_all(missing, files, stop)
        indexed = [SourceFile(path, blobs[path], kind_of(path, files[path]), known[keys[path]]) for path in files]
        return ParsedBatch(Segment.build(indexed), len(missing))

    def _chunk_all(
        self, missing: Mapping[str, str], files: Mapping[str, bytes], stop: threading.Event | None
    ) -> dict[str, tuple[IndexedChunk, ...]]:
        """Return the chunks by key and cache them, also those made before a stop."""
        found: dict[str, tuple[IndexedChunk, ...]] = {}
        lasting: dict[str, tuple[IndexedChunk, ...]] = {}
        try:
            for key, path in missing.items():
                if stop is not None and stop.is_set():
                    raise Stopped
                found[key], is_lasting = self._chunks_of(path, files[path])
                if is_lasting:
                    lasting[key] = found[key]
        finally:
            self._cache.store(lasting)
        return found

    def delete(self, blobs: Collection[str]) -> bool:
        """Delete the chunks of these contents from the cache; return True if there were any."""
        return self._cache.delete(blobs)

    def shrink_cache(self) -> None:
        """Bound the size of the cache."""
        self._cache.shrink()

    def _chunks_of(self, path: str, data: bytes) -> tuple[tuple[IndexedChunk, ...], bool]:
        """Return the chunks, and True if they may be cached: not while the grammar is missing."""
        text = data.decode("utf-8", "replace")
        language = language_of(path)
        if find_language(language) is None:
            outline: Outline | None = markdown_outline(text) if language == "markdown" else Outline()
        else:
            outline = self._syntax.outline(data, language)
        return chunk_text(text, outline or Outline(), self._max_tokens), outline is not None
