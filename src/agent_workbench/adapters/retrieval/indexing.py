"""Keeping the index of one workspace equal to its files, reading only what changed."""

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agent_workbench.adapters.retrieval.cache import PieceCache
from agent_workbench.adapters.retrieval.cutting import cut, headings
from agent_workbench.adapters.retrieval.files import Stamp, blob_id, is_text, stamp_files, within_bounds
from agent_workbench.adapters.retrieval.index import Found, WorkspaceIndex
from agent_workbench.adapters.retrieval.languages import find_language, language_of
from agent_workbench.adapters.retrieval.pieces import Outline, Piece
from agent_workbench.adapters.retrieval.syntax import Syntax


class Stopped(Exception):
    """The one who asked for the work no longer wants it."""


class Parser:
    """Cuts files into pieces, looking first whether the same content was cut before. For one thread at a time."""

    def __init__(self, cache: PieceCache, max_tokens: int) -> None:
        self._cache = cache
        self._max_tokens = max_tokens
        self._syntax = Syntax()
        self.parsed = 0

    def pieces_of(self, files: Mapping[str, bytes], stop: threading.Event) -> dict[str, tuple[Piece, ...]]:
        """Return the pieces of each file (path to content); raise `Stopped` when `stop` is set meanwhile."""
        keys = {path: f"{blob_id(data)}:{language_of(path)}:{self._max_tokens}" for path, data in files.items()}
        known = self._cache.find(keys.values())
        fresh: dict[str, tuple[Piece, ...]] = {}
        try:
            for path, data in files.items():
                if stop.is_set():
                    raise Stopped
                if keys[path] not in known:
                    known[keys[path]], lasting = self._cut(path, data)
                    if lasting:
                        fresh[keys[path]] = known[keys[path]]
        finally:
            self._cache.keep(fresh)
        return {path: known[key] for path, key in keys.items()}

    def shrink_cache(self) -> None:
        """Bound the cache's size."""
        self._cache.shrink()

    def _cut(self, path: str, data: bytes) -> tuple[tuple[Piece, ...], bool]:
        """Return the pieces, and whether they will always be these: not so if a grammar is missing today."""
        self.parsed += 1
        text = data.decode("utf-8", "replace")
        language = language_of(path)
        if find_language(language) is None:
            outline: Outline | None = headings(text) if language == "markdown" else Outline()
        else:
            outline = self._syntax.outline(data, language)
        return cut(text, outline or Outline(), self._max_tokens), outline is not None


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be read, what the disk said of all files before, and how many are too many to be indexed."""

    paths: tuple[str, ...]
    stamps: Mapping[str, Stamp]
    left_out: int


class Indexing:
    """The index of the workspace at `root` and what is known of its files. For one thread at a time; blocks."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._index = WorkspaceIndex()
        self._stamps: dict[str, Stamp] = {}

    def changes(self, paths: Sequence[str], exclude: Collection[str]) -> Changes:
        """Return what has to be read anew; what is gone is forgotten."""
        found = stamp_files(self._root, paths, exclude, time.time_ns())
        stamps = within_bounds(found)
        for path in self._stamps.keys() - stamps.keys():
            del self._stamps[path]
            self._index.drop(path)
        changed = (path for path, stamp in stamps.items() if stamp.fresh or self._stamps.get(path) != stamp)
        return Changes(tuple(changed), stamps, len(found) - len(stamps))

    def take(
        self, files: Mapping[str, bytes | None], stamps: Mapping[str, Stamp], parser: Parser, stop: threading.Event
    ) -> None:
        """Take in files that were read; None is one that cannot be. Raises `Stopped` between two files, at `stop`."""
        texts: dict[str, bytes] = {}
        for path, data in files.items():
            if data is None or not is_text(data):
                self._index.drop(path)
            elif self._index.blob_of(path) != blob_id(data):
                texts[path] = data
        for path, pieces in parser.pieces_of(texts, stop).items():
            if stop.is_set():
                raise Stopped
            self._index.put(path, blob_id(texts[path]), pieces)
            self._stamps[path] = stamps[path]
        self._stamps.update({path: stamps[path] for path in files})

    def search(self, query: str, limit: int) -> list[Found]:
        """Return the best pieces, best first."""
        return self._index.search(query, limit)
