"""The port `Retriever`: code found by words, names and places, in the files as they are now."""

import asyncio
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.adapters.retrieval.chunking.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.chunking.chunks import CHARS_PER_TOKEN
from agent_workbench.adapters.retrieval.history.folder_histories import FolderHistories
from agent_workbench.adapters.retrieval.history.repo_history import Past
from agent_workbench.adapters.retrieval.indexer.file_parser import Parser
from agent_workbench.adapters.retrieval.indexer.folder_index import FolderIndex, Tools
from agent_workbench.adapters.retrieval.indexer.index_refresher import IndexRefresher
from agent_workbench.adapters.retrieval.indexer.indexable_files import blob_id
from agent_workbench.adapters.retrieval.indexer.worker_pool import WorkerPool
from agent_workbench.adapters.retrieval.search.freed_memory import keep_freed_memory
from agent_workbench.adapters.retrieval.search.query import wanted_words
from agent_workbench.adapters.retrieval.search.scoring import Found, search
from agent_workbench.adapters.retrieval.vectors.folder_vectors import FolderVectors
from agent_workbench.adapters.retrieval.worker_processes.threads import in_thread
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.retrieval import Chunk, CodeQuery, IndexStatus
from agent_workbench.core.settings import RetrievalSettings

_MOST_FOLDERS = 4
_MOST_SIMILAR = 1_000
# Files may change between the search and the reading of what it found.
_TRIES = 3
# So long a complete search waits, when all is indexed, for a past that was never read here. It is read beside the files
# and takes a second or two in all; without it a search is clearly worse (docs/decisions/0014-retrieval.md).
_PAST_SECONDS = 2.0
# A piece is longer than this only where a line of it is.
_LONGEST_PIECE = 4


class CodeRetriever:
    """`core.ports.Retriever`; what can be made again is kept under `cache_dir`, for all folders together.

    One search runs at a time, in a thread, beside the one refresh of each folder.
    """

    def __init__(self, settings: RetrievalSettings, cache_dir: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._cache = CacheFolder(cache_dir)
        self.workers = WorkerPool(cache_dir, settings.max_chunk_tokens)
        self._tools = Tools(Parser(ChunkCache(cache_dir), settings.max_chunk_tokens), self.workers)
        self._vectors = FolderVectors(settings.embeddings, self._cache.vectors_of, environ)
        self._pasts = FolderHistories(self._cache.history_of)
        self._folders: OrderedDict[str, IndexRefresher] = OrderedDict()
        self._searching = asyncio.Lock()
        self._preparing: set[asyncio.Task[None]] = set()

    @property
    def parsed_files(self) -> int:
        """How many files were cut into pieces so far because no cache knew their content."""
        return self._tools.parsed

    def status(self, sources: Sources) -> IndexStatus:
        folder = self._folders.get(sources.root)
        status = folder.index.status if folder else IndexStatus()
        return replace(status, vectors=self._vectors.standing(sources.root))

    def prepare(self, sources: Sources) -> "asyncio.Task[None]":
        """Begin to index in the background; what fails there fails again, and is told, at the next search."""
        task = in_background(self._prepare(sources))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)
        return task

    async def build(self, sources: Sources) -> None:
        """Return when all is indexed as it is now, past and vectors included; raises what `sources` raises."""
        await self._refresh(self._folder(sources), sources)
        await self._pasts.settled(sources.root)
        await self._vectors.settled(sources.root)

    async def close(self) -> None:
        """Stop what runs in the background."""
        for task in tuple(self._preparing):
            task.cancel()
        await asyncio.gather(*self._preparing, return_exceptions=True)
        await asyncio.gather(*(folder.close() for folder in self._folders.values()))
        await self._pasts.close()
        await self._vectors.close()
        await self.workers.close()

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        folder = self._folder(sources)
        chunks: list[Chunk | None] = []
        for _ in range(_TRIES):
            if complete:
                await self._refresh(folder, sources)
                if self._pasts.of(sources.root) is None:
                    await self._pasts.settled(sources.root, _PAST_SECONDS)
            else:
                folder.begin(sources)
            similar = await self._similar(sources, query)
            found = await self._alone(
                partial(_search, folder.index, query, self._pasts.of(sources.root), similar, limit)
            )
            contents = await sources.read_files(tuple(dict.fromkeys(each.path for each in found)))
            chunks = [_chunk(each, contents.get(each.path), self._settings.max_chunk_tokens) for each in found]
            if not complete or None not in chunks:
                break
        return tuple(chunk for chunk in chunks if chunk is not None)

    async def _prepare(self, sources: Sources) -> None:
        folder = self._folder(sources)
        try:
            await self._refresh(folder, sources)
            # What only a search loads is loaded now.
            await self._alone(partial(_search, folder.index, CodeQuery(""), None, {}, 1))
        except WorkbenchError:
            folder.index.status = IndexStatus()

    async def _refresh(self, folder: IndexRefresher, sources: Sources) -> None:
        """Bring the folder's index up to date; a past that was never read is read meanwhile."""
        if self._pasts.of(sources.root) is None:
            self._pasts.begin(sources)
        await folder.refresh(sources)

    def _go_on(self, sources: Sources, folder: FolderIndex) -> None:
        """Bring up to the folder's new index what is made behind it."""
        self._pasts.begin(sources)
        self._vectors.begin(sources, folder.index.view)

    async def _similar(self, sources: Sources, query: CodeQuery) -> dict[str, float]:
        """Return the files whose vectors are like the query's, with how much; none while there are no vectors."""
        text = "\n".join(filter(None, (query.text, query.failing)))
        return await self._vectors.similar(sources.root, text, Counter(wanted_words(query)), _MOST_SIMILAR)

    async def _alone(self, search: Callable[[], list[Found]]) -> list[Found]:
        async with self._searching:
            return await in_thread(search)

    def _folder(self, sources: Sources) -> IndexRefresher:
        """Return the folder's index, in place of one that was not asked for longest if there are many."""
        root = sources.root
        if root not in self._folders:
            self._folders[root] = IndexRefresher(
                FolderIndex(root, self._settings, self._cache, self._tools),
                self._go_on,
            )
        self._folders.move_to_end(root)
        for other in tuple(self._folders)[: max(0, len(self._folders) - _MOST_FOLDERS)]:
            if self._folders[other].idle:
                del self._folders[other]
                self._vectors.forget(other)
        return self._folders[root]


def _search(
    folder: FolderIndex, query: CodeQuery, past: Past | None, similar: Mapping[str, float], limit: int
) -> list[Found]:
    keep_freed_memory()
    return search(folder.index.view, query, past, similar, limit)


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
        found.signals,
    )


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} … {len(text) - limit} characters cut …"
