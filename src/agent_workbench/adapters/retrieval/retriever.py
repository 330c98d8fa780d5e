"""The port `Retriever`: code found by words, names and places, in the files as they are now."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from agent_workbench.adapters.retrieval.cache import PieceCache
from agent_workbench.adapters.retrieval.files import blob_id
from agent_workbench.adapters.retrieval.index import Found
from agent_workbench.adapters.retrieval.indexing import Changes, Indexing, Parser
from agent_workbench.adapters.retrieval.pieces import CHARS_PER_TOKEN
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports import Sources
from agent_workbench.core.retrieval import Chunk, CodeQuery, IndexStatus
from agent_workbench.core.settings import RetrievalSettings

# So much is read before a thread takes it over: little enough to be stopped soon.
_BATCH_FILES = 32
_BATCH_BYTES = 256 * 1024
_MOST_WORKSPACES = 4
# Files may change between the search and the reading of what it found.
_TRIES = 3
# A piece is longer than this only where a line of it is.
_LONGEST_PIECE = 4

_Result = TypeVar("_Result")


class CodeRetriever:
    """`core.ports.Retriever`; pieces are cached under `cache_dir`, for all workspaces together.

    One search or indexing runs at a time, in a thread; cancelling it stops the thread before the next file.
    """

    def __init__(self, settings: RetrievalSettings, cache_dir: Path) -> None:
        self._settings = settings
        self._parser = Parser(PieceCache(cache_dir), settings.max_chunk_tokens)
        self._indexings: OrderedDict[str, Indexing] = OrderedDict()
        self._one_at_a_time = asyncio.Lock()
        self._preparing: set[asyncio.Task[None]] = set()
        self._progress = IndexStatus()

    def status(self, sources: Sources) -> IndexStatus:
        return self._progress

    @property
    def parsed_files(self) -> int:
        """How many files were cut into pieces so far because no cache knew their content."""
        return self._parser.parsed

    def prepare(self, sources: Sources) -> "asyncio.Task[None]":
        """Begin to index in the background; what fails there fails again, and is told, at the next search."""
        task = asyncio.create_task(self._prepare(sources))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)
        return task

    async def close(self) -> None:
        """Stop what runs in the background."""
        for task in tuple(self._preparing):
            task.cancel()
        await asyncio.gather(*self._preparing, return_exceptions=True)

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        text = "\n".join(filter(None, (query.text, query.failing)))
        chunks: list[Chunk | None] = []
        async with self._one_at_a_time:
            for _ in range(_TRIES):
                indexing = await self._up_to_date(sources)
                found = await _in_thread(partial(indexing.search, text, limit))
                contents = await sources.read_files(tuple(dict.fromkeys(each.path for each in found)))
                chunks = [_chunk(each, contents.get(each.path), self._settings.max_chunk_tokens) for each in found]
                if None not in chunks:
                    break
        return tuple(chunk for chunk in chunks if chunk is not None)

    async def _prepare(self, sources: Sources) -> None:
        try:
            async with self._one_at_a_time:
                indexing = await self._up_to_date(sources)
                # What only a search loads is loaded now.
                await _in_thread(partial(indexing.search, "", 1))
        except WorkbenchError:
            self._progress = IndexStatus()

    async def _up_to_date(self, sources: Sources) -> Indexing:
        """Return the workspace's index after reading what changed since it was last asked."""
        root = sources.root
        indexing = self._indexings.setdefault(root, Indexing(root))
        self._indexings.move_to_end(root)
        while len(self._indexings) > _MOST_WORKSPACES:
            self._indexings.popitem(last=False)
        paths = await sources.list_files()
        changes = await _in_thread(partial(indexing.changes, paths, self._settings.exclude))
        parsed_before = self._parser.parsed
        self._progress = IndexStatus(0, len(changes.paths), changes.left_out)
        for batch in _batches(changes):
            read = await sources.read_files(batch)
            files = {path: read.get(path) for path in batch}
            stop = threading.Event()
            await _in_thread(partial(indexing.take, files, changes.stamps, self._parser, stop), stop)
            self._progress = replace(self._progress, done=self._progress.done + len(batch))
        if self._parser.parsed > parsed_before:
            await _in_thread(self._parser.shrink_cache)
        return indexing


async def _in_thread(work: Callable[[], _Result], stop: threading.Event | None = None) -> _Result:
    """Do `work` in a thread; when cancelled, set `stop` and wait until the thread has heard it."""
    running = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if stop is not None:
            stop.set()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()
        raise


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


def _chunk(found: Found, data: bytes | None, max_tokens: int) -> Chunk | None:
    """Return the piece with its text, None when its file has changed since."""
    if data is None or blob_id(data) != found.blob:
        return None
    lines = data.decode("utf-8", "replace").split("\n")[found.first_line - 1 : found.last_line]
    text = _bounded("\n".join(lines), max_tokens * CHARS_PER_TOKEN * _LONGEST_PIECE)
    return Chunk(
        found.path,
        found.first_line,
        found.last_line,
        text,
        found.score,
        found.symbol,
        found.why,
        -(-len(text) // CHARS_PER_TOKEN),
    )


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} … {len(text) - limit} characters cut …"
