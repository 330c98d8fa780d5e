"""Implementation of the port `Retriever`: search by words, symbols, places and vectors in the current files."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.adapters.retrieval.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.folder_histories import FolderHistories
from agent_workbench.adapters.retrieval.folder_index import FolderIndex
from agent_workbench.adapters.retrieval.folder_vectors import FolderVectors, MakeServer
from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.file_parser import FileParser
from agent_workbench.adapters.retrieval.index_refresher import IndexRefresher
from agent_workbench.adapters.retrieval.note_vectors import NOTES, NoteVectors
from agent_workbench.adapters.retrieval.passages import Passages, passages
from agent_workbench.adapters.retrieval.saved_index import saved_status
from agent_workbench.adapters.retrieval.scoring import FoundChunk, keep_freed_memory, search
from agent_workbench.adapters.retrieval.search_query import query_words
from agent_workbench.adapters.retrieval.search_symbols import matching_symbols
from agent_workbench.adapters.retrieval.worker_pool import ParsingTools, WorkerPool
from agent_workbench.adapters.retrieval.worker_process import in_thread
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import CacheFacts, Chunk, CodeQuery, Completion, IndexStatus
from agent_workbench.core.settings import RetrievalSettings

_MAX_FOLDERS = 4
_MAX_SIMILAR = 1_000
# Files may change between a search and the reading of its results.
_ATTEMPTS = 3
# How long a complete search waits for commits that were never read. They are read beside the files in a second or two;
# without them results are clearly worse (docs/decisions/0014-retrieval.md).
_HISTORY_SECONDS = 2.0
# Bound of the time that the first complete searches wait, together, until vectors are loaded and new files embedded.
# A search after that uses the vectors if nearly all files have one; the index's status says how many have.
_VECTOR_SECONDS = 10.0


class CodeRetriever:
    """Code search of all folders; its cache is below `cache_dir`.

    One search at a time runs in a thread, beside at most one refresh of each folder. `make_server` returns the server
    for an embedding model (`retrieval.embeddings.path`), not started yet.
    """

    def __init__(
        self,
        settings: RetrievalSettings,
        cache_dir: Path,
        environ: Mapping[str, str] = os.environ,
        make_server: MakeServer | None = None,
    ) -> None:
        self._settings = settings
        self._cache = CacheFolder(cache_dir)
        self.workers = WorkerPool(cache_dir, settings.max_chunk_tokens)
        self._tools = ParsingTools(FileParser(ChunkCache(cache_dir), settings.max_chunk_tokens), self.workers)
        self._vectors = FolderVectors(settings.embeddings, self._cache.vectors_of, environ, make_server)
        self._histories = FolderHistories(self._cache.history_of)
        self._folders: OrderedDict[str, IndexRefresher] = OrderedDict()
        self._searching = asyncio.Lock()
        self._preparing: set[asyncio.Task[None]] = set()

    @property
    def parsed_files(self) -> int:
        """Number of files that were parsed because no cache knew their content."""
        return self._tools.parsed

    def status(self, sources: Sources) -> IndexStatus:
        folder = self._folders.get(sources.root)
        status = folder.index.status if folder else IndexStatus()
        return replace(status, vectors=self._vectors.status(sources.root))

    def prepare(self, sources: Sources) -> "asyncio.Task[None]":
        """Start indexing in the background; the next search reports what fails."""
        task = in_background(self._prepare(sources))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)
        return task

    def note_vectors(self, root: str, collection: str = NOTES) -> NoteVectors | None:
        """Return the vectors of a collection of texts in the repo at `root`, None where the settings want none.

        Blocks.
        """
        return self._vectors.of_notes(root, collection)

    async def build(self, sources: Sources) -> None:
        """Wait until files, commits and vectors are indexed; raises what `sources` raises."""
        await self._refresh(self._folder(sources), sources)
        await self._histories.settled(sources.root)
        await self._vectors.settled(sources.root)

    async def saved_status(self, sources: Sources) -> IndexStatus:
        """Return the contents of the folder's saved index, and what no index takes in; nothing is indexed."""
        paths = await sources.list_files()
        return await asyncio.to_thread(saved_status, sources.root, paths, self._settings, self._cache)

    async def cache_facts(self) -> CacheFacts:
        """Return the contents of the cache of all folders."""
        return await asyncio.to_thread(self._cache.facts)

    async def clear_cache(self, root: str = "") -> int:
        """Remove the cache of the folder `root`, or all of it; return the removed bytes. Raises `StorageError`."""
        return await asyncio.to_thread(self._cache.clear, root)

    async def close(self) -> None:
        """Cancel the tasks in the background and end the processes."""
        for task in tuple(self._preparing):
            task.cancel()
        await asyncio.gather(*self._preparing, return_exceptions=True)
        await asyncio.gather(*(folder.close() for folder in self._folders.values()))
        await self._histories.close()
        await self._vectors.close()
        await self.workers.close()

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        folder = self._folder(sources)
        made = Passages((), is_current=True)
        for _ in range(_ATTEMPTS):
            if complete:
                self._begin_rest(sources)
                words = partial(query_words, query)
                await folder.refresh_for(sources, words, is_thorough=not made.is_current)
                if self._histories.of(sources.root) is None:
                    await self._histories.settled(sources.root, _HISTORY_SECONDS)
                await self._vectors.first_ready(sources.root, _VECTOR_SECONDS)
            else:
                folder.begin(sources)
            similar = await self._similar(sources, query)
            found = await self._run_search(
                partial(_search, folder.index, query, self._histories.of(sources.root), similar, limit)
            )
            contents = await sources.read_files(tuple(dict.fromkeys(each.path for each in found)))
            made = await asyncio.to_thread(passages, found, contents, self._settings.max_chunk_tokens)
            if not complete or made.is_current:
                break
        if folder.index.finder.is_due:
            folder.begin(sources, is_thorough=True)
        return made.chunks

    async def symbols(self, sources: Sources, prefix: str, limit: int) -> tuple[Completion, ...]:
        folder = self._folder(sources)
        view = folder.index.index.view
        if not view.segments:
            folder.begin(sources)
        return await in_thread(partial(matching_symbols, view, prefix, limit))

    async def _prepare(self, sources: Sources) -> None:
        folder = self._folder(sources)
        try:
            await self._refresh(folder, sources)
            # Load the modules that only a search needs.
            await self._run_search(partial(_search, folder.index, CodeQuery(""), None, {}, 1))
        except WorkbenchError:
            folder.index.status = IndexStatus()

    async def _refresh(self, folder: IndexRefresher, sources: Sources) -> None:
        """Update the folder's index; commits and stored vectors are loaded meanwhile."""
        self._begin_rest(sources)
        await folder.refresh(sources)

    def _begin_rest(self, sources: Sources) -> None:
        """Begin to load commits and stored vectors, unless they are."""
        if self._histories.of(sources.root) is None:
            self._histories.begin(sources)
        self._vectors.begin_loading(sources.root)

    def _update_rest(self, sources: Sources, folder: FolderIndex) -> None:
        """Update commits and vectors after a change of the folder's index."""
        self._histories.begin(sources)
        self._vectors.begin_update(sources, folder.index.view)

    async def _similar(self, sources: Sources, query: CodeQuery) -> dict[str, float]:
        """Return files whose vectors are close to the query's, with their similarity; none without vectors."""
        text = "\n".join(filter(None, (query.text, query.failing)))
        return await self._vectors.nearest(sources.root, text, _MAX_SIMILAR)

    async def _run_search(self, search: Callable[[], list[FoundChunk]]) -> list[FoundChunk]:
        async with self._searching:
            return await in_thread(search)

    def _folder(self, sources: Sources) -> IndexRefresher:
        """Return the folder's index; drop the least recently used ones if there are many."""
        root = sources.root
        if root not in self._folders:
            self._folders[root] = IndexRefresher(
                FolderIndex(root, self._settings, self._cache, self._tools),
                self._update_rest,
            )
        self._folders.move_to_end(root)
        for other in tuple(self._folders)[: max(0, len(self._folders) - _MAX_FOLDERS)]:
            if self._folders[other].idle:
                self._folders.pop(other).index.finder.close()
                self._vectors.forget(other)
        return self._folders[root]


def _search(
    folder: FolderIndex, query: CodeQuery, commit_index: CommitIndex | None, similar: Mapping[str, float], limit: int
) -> list[FoundChunk]:
    keep_freed_memory()
    return search(folder.index.view, query, commit_index, similar, limit)
