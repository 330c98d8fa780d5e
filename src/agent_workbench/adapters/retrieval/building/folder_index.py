"""The index of one folder kept equal to its files: loaded, brought up to date in the background, saved."""

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from agent_workbench.adapters.retrieval.building.parsing import Batch, Parser
from agent_workbench.adapters.retrieval.building.workers import WORKERS, Workers
from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.adapters.retrieval.cutting.piece_cache import FORMAT
from agent_workbench.adapters.retrieval.files.indexed import (
    Excluded,
    Stamp,
    blob_id,
    is_text,
    stamp_files,
    within_bounds,
)
from agent_workbench.adapters.retrieval.files.stamps import decode_stamps, encode_stamps
from agent_workbench.adapters.retrieval.index.packing import DamagedIndex
from agent_workbench.adapters.retrieval.index.workspace_index import WorkspaceIndex
from agent_workbench.adapters.retrieval.threads import all_of, in_thread
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ports import Sources
from agent_workbench.core.retrieval import IndexStatus
from agent_workbench.core.settings import RetrievalSettings

# One batch is a moment's work, so that what is ready is soon searched and what is cancelled soon stops.
_BATCH_FILES = 256
_BATCH_BYTES = 512 * 1024
# So little is cut in a thread sooner than a process starts, and hardly felt on the screen.
_FEW_FILES, _FEW_BYTES = 64, 128 * 1024
# So many changes are worth a new snapshot; fewer are read again quickly.
_WORTH_SAVING = 50


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be read, what the disk said of all files before, and how many files are too large, or too many."""

    paths: tuple[str, ...]
    stamps: Mapping[str, Stamp]
    left_out: int

    @property
    def bytes(self) -> int:
        """How much there is to be read."""
        return sum(self.stamps[path].size for path in self.paths)


@dataclass(slots=True)
class Tools:
    """What cuts files, for all folders; `parsed` counts those whose content no cache knew."""

    parser: Parser
    workers: Workers
    parsed: int = 0


class FolderIndex:
    """The files below `root`, as `index` has them. One refresh at a time; searches take `index.view` meanwhile."""

    def __init__(self, root: str, settings: RetrievalSettings, cache: CacheFolder, tools: Tools) -> None:
        self.index = WorkspaceIndex()
        self.status = IndexStatus()
        self._root = root
        self._settings = settings
        self._cache = cache
        self._tools = tools
        self._stamps: dict[str, Stamp] = {}
        self._excluded = Excluded(settings.exclude)
        self._loaded = False
        self._unsaved = 0
        self._changing = asyncio.Lock()

    async def refresh(self, sources: Sources) -> bool:
        """Read what changed since it was last read; return whether anything had. Raises what `sources` raises."""
        if not self._loaded:
            await in_thread(self._load)
        paths = await sources.list_files()
        changes = await in_thread(partial(self._changes, paths))
        held = self.index.view
        self.status = IndexStatus(
            0, len(changes.paths), held.files, held.pieces, changes.left_out, vectors=self.status.vectors
        )
        if not changes.paths:
            return False
        few = len(changes.paths) <= _FEW_FILES and changes.bytes <= _FEW_BYTES
        batches = _batches(changes)
        # One more than there are workers, so that the next batch is read when one is done.
        drains = [self._drain(sources, batches, changes, few=few) for _ in range(1 if few else WORKERS + 1)]
        try:
            await all_of(drains)
            if len(changes.paths) > len(changes.stamps) // 2 and len(self.index.view.segments) > 1:
                await self._merge_from(0)
        finally:
            if not few:
                await self._tools.workers.close()
        self._unsaved += len(changes.paths)
        if self._unsaved >= _WORTH_SAVING:
            await in_thread(self._save)
        return True

    async def _drain(self, sources: Sources, batches: Iterator[Sequence[str]], changes: Changes, *, few: bool) -> None:
        """Take in batch after batch until there is none left."""
        for paths in batches:
            read = await sources.read_files(paths)
            texts, gone = await in_thread(partial(self._sort_out, paths, read))
            for batch in await self._cut(texts, few=few):
                self._tools.parsed += batch.parsed
                await self._take(batch, few=few)
            if gone:
                async with self._changing:
                    await in_thread(partial(self.index.drop, *gone))
            self._stamps.update({path: changes.stamps[path] for path in paths})
            self.status = replace(self.status, done=self.status.done + len(paths))

    def _sort_out(self, paths: Sequence[str], read: Mapping[str, bytes]) -> tuple[dict[str, bytes], list[str]]:
        """Return the texts that are not in the index as they are, and what is no text, or not there any more."""
        texts: dict[str, bytes] = {}
        gone = []
        for path in paths:
            data = read.get(path)
            if data is None or not is_text(data):
                gone.append(path)
            elif self.index.view.blob_of(path) != blob_id(data):
                texts[path] = data
        return texts, gone

    async def _cut(self, texts: Mapping[str, bytes], *, few: bool) -> list[Batch]:
        if not texts:
            return []
        if few:
            stop = threading.Event()
            return [await in_thread(partial(self._tools.parser.index, texts, stop), stop)]
        batch = await self._tools.workers.index(texts)
        if batch is not None:
            return [batch]
        # One of them is more than a grammar bears, or somebody killed the worker: each has another try, alone.
        alone = [await self._tools.workers.index({path: data}) for path, data in texts.items()]
        self.status = replace(self.status, left_out=self.status.left_out + alone.count(None))
        return [each for each in alone if each is not None]

    async def _take(self, batch: Batch, *, few: bool) -> None:
        async with self._changing:
            await in_thread(partial(self.index.take, batch.segment, tidy=few))
            if not few and (place := self.index.untidy()) is not None:
                await self._merge_from(place)
            view = self.index.view
            self.status = replace(self.status, files=view.files, chunks=view.pieces)

    async def _merge_from(self, place: int) -> None:
        """Merge in a worker: here the screen would stand still meanwhile."""
        view = self.index.view
        merged = await self._tools.workers.merge(view.segments[place:], view.alive[place:])
        if merged is None:
            await in_thread(self.index.compact)
        else:
            self.index.replace_from(place, merged)

    def _changes(self, paths: Sequence[str]) -> Changes:
        """Return what has to be read anew; what is gone is forgotten."""
        found = stamp_files(self._root, paths, self._excluded, time.time_ns(), self._stamps)
        stamps = within_bounds(found)
        gone = self._stamps.keys() - stamps.keys()
        for path in gone:
            del self._stamps[path]
        if gone:
            self.index.drop(*gone)
        changed = (path for path, stamp in stamps.items() if self._stamps.get(path) is not stamp)
        return Changes(tuple(changed), stamps, len(found) - len(stamps))

    def _load(self) -> None:
        """Take over what was saved of this folder, or what another worktree of the repo knows of the same contents."""
        self._loaded = True
        self._cache.make_private()
        for path in (self._cache.snapshot_of(self._root), *self._cache.siblings_of(self._root)[:1]):
            with suppress(DamagedIndex):
                index, extra = WorkspaceIndex.load(path)
                stamps = decode_stamps(extra, list(index.view.paths()), self._header())
                # Of a sibling the contents are right and the times are not; what it has besides goes when it is missed.
                own = path == self._cache.snapshot_of(self._root)
                if stamps is not None:
                    self.index = index
                    self._stamps = stamps if own else dict.fromkeys(stamps, Stamp(0, 0, -1, 0))
                    return

    def _save(self) -> None:
        """Save the index, if the disk lets us, and keep all that is saved within bounds."""
        extra = encode_stamps(self._stamps, self.index.view.paths(), self._header())
        with suppress(StorageError):
            self.index.save(self._cache.snapshot_of(self._root), extra)
            self._cache.note(self._root)
            self._unsaved = 0
        self._tools.parser.shrink_cache()

    def _header(self) -> dict[str, str]:
        return {"max_tokens": str(self._settings.max_chunk_tokens), "format": str(FORMAT)}


def _batches(changes: Changes) -> Iterator[Sequence[str]]:
    """Yield the changed paths in groups that are neither many nor large."""
    batch: list[str] = []
    size = 0
    for path in changes.paths:
        batch.append(path)
        size += changes.stamps[path].size
        if len(batch) == _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
