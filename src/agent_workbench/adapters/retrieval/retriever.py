"""Implementation of the port `Retriever`, shared by sessions with equal settings: search in the current files."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
from agent_workbench.adapters.retrieval.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.folder_histories import FolderHistories
from agent_workbench.adapters.retrieval.folder_index import FolderIndex, saved_status
from agent_workbench.adapters.retrieval.folder_vectors import NOTES, FolderVectors, MakeServer, NoteVectors
from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.file_parser import FileParser
from agent_workbench.adapters.retrieval.passages import Passages, passages
from agent_workbench.adapters.retrieval.scoring import FoundChunk, keep_freed_memory, search
from agent_workbench.adapters.retrieval.search_features import matching_symbols
from agent_workbench.adapters.retrieval.search_query import query_words
from agent_workbench.adapters.retrieval.worker_pool import ParsingTools, WorkerPool
from agent_workbench.adapters.retrieval.worker_process import in_thread
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import CacheFacts, Chunk, CodeQuery, Completion, IndexStatus
from agent_workbench.core.settings import RetrievalSettings

Words = Callable[[], Sequence[str]]
"""Returns the words of a query; called only if they are needed."""

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


class IndexRefresher:
    """Refreshes one index. A caller that stops waiting does not cancel the refresh; `close` does.

    `on_change` is called after the first refresh and after each one that found changes.
    """

    def __init__(
        self, index: FolderIndex, on_change: Callable[[Sources, FolderIndex], None] = lambda _sources, _index: None
    ) -> None:
        self.index = index
        self._on_change = on_change
        self._notified = False
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """True if no refresh runs or waits."""
        return self._next is None and (self._running is None or self._running.done())

    async def refresh(self, sources: Sources, *, is_thorough: bool = False) -> None:
        """Wait until the index has the files as they are now. Raises what `sources` raises."""
        await asyncio.shield(self._begin_next(sources, is_thorough=is_thorough))

    async def refresh_for(self, sources: Sources, words: Words, *, is_thorough: bool = False) -> None:
        """Wait for a refresh; while many files are indexed, wait for those only that contain the words."""
        refresh = self._begin_next(sources, is_thorough=is_thorough)
        early = in_background(self.index.first_ready(sources, words), expected=(WorkbenchError,))
        try:
            await asyncio.wait({refresh, early}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            early.cancel()
        if refresh.done() or early.exception() is not None:
            await asyncio.shield(refresh)

    def begin(self, sources: Sources, *, is_thorough: bool = False) -> None:
        """Start a refresh unless one runs, without waiting for it."""
        if self.idle:
            self._begin_next(sources, is_thorough=is_thorough)

    async def close(self) -> None:
        """Cancel the refreshes."""
        tasks = [task for task in (self._next, self._running) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self.index.finder.close)
        self._next = self._running = None

    def _begin_next(self, sources: Sources, *, is_thorough: bool = False) -> "asyncio.Task[None]":
        """Return the next refresh; the current one may have listed the files before the last change."""
        if self._next is None:
            # Errors go to the callers that wait; without one, the next search meets the error again.
            self._next = in_background(
                self._after(self._running, sources, is_thorough=is_thorough), expected=(WorkbenchError,)
            )
        return self._next

    async def _after(self, before: "asyncio.Task[None] | None", sources: Sources, *, is_thorough: bool) -> None:
        if before is not None:
            await asyncio.wait({before})
        self._running, self._next = self._next, None
        changed = await self.index.refresh(sources, is_thorough=is_thorough)
        if changed or not self._notified:
            self._notified = True
            self._on_change(sources, self.index)


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
            size, to_rewrite = self._settings.max_chunk_tokens, query.to_rewrite
            made = await asyncio.to_thread(passages, found, contents, size, to_rewrite=to_rewrite)
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


class SharedRetrievers:
    """Retrievers by settings, each with one set of workers and closed when its last holder closes."""

    def __init__(self) -> None:
        self._held: dict[Hashable, tuple[CodeRetriever, list[SharedRetriever]]] = {}

    def take(self, key: Hashable, make: Callable[[], CodeRetriever]) -> "SharedRetriever":
        """Return the retriever for `key`, made by `make` if no session holds one."""
        if key not in self._held:
            self._held[key] = make(), []
        retriever, holders = self._held[key]
        shared = SharedRetriever(retriever, lambda: self._release(key, shared))
        holders.append(shared)
        return shared

    async def _release(self, key: Hashable, shared: "SharedRetriever") -> None:
        retriever, holders = self._held.get(key, (None, []))
        if retriever is None or shared not in holders:
            return
        holders.remove(shared)
        if not holders:
            del self._held[key]
            await retriever.close()


class SharedRetriever:
    """Implementation of the port `Retriever` for one holder of a shared retriever."""

    def __init__(self, retriever: CodeRetriever, give_back: Callable[[], Awaitable[None]]) -> None:
        self._retriever = retriever
        self._release = give_back

    def prepare(self, sources: Sources) -> object:
        return self._retriever.prepare(sources)

    def status(self, sources: Sources) -> IndexStatus:
        return self._retriever.status(sources)

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        return await self._retriever.search(sources, query, limit, complete=complete)

    async def symbols(self, sources: Sources, prefix: str, limit: int) -> tuple[Completion, ...]:
        return await self._retriever.symbols(sources, prefix, limit)

    def note_vectors(self, root: str, collection: str = NOTES) -> NoteVectors | None:
        """Return the vectors of a collection of texts in the repo at `root`, None where the settings want none.

        Blocks.
        """
        return self._retriever.note_vectors(root, collection)

    async def close(self) -> None:
        await self._release()
