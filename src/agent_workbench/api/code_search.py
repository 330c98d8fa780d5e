"""Calls that search the code of the user's checkout, and look after the index of it; nothing of the repo is run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.retrieval import Chunk, CodeQuery, IndexStatus
from agent_workbench.core.settings import RetrievalSettings

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.adapters.retrieval.cache_folder import CacheFacts
    from agent_workbench.adapters.retrieval.retriever import CodeRetriever
    from agent_workbench.core.ports.workspace import Sources

Report = Callable[[IndexStatus], None]
REPORT_SECONDS = 0.1
_Result = TypeVar("_Result")


class Searched(Struct, frozen=True):
    """What was found, best first, and the index it was found in."""

    chunks: tuple[Chunk, ...]
    status: IndexStatus


class IndexFacts(Struct, frozen=True):
    """The repo's root, how far its index is, and what the cache of all repos holds."""

    root: str
    status: IndexStatus
    cache: "CacheFacts"


async def search_checkout(invocation: Invocation, query: CodeQuery, limit: int, report: Report) -> Searched:
    """Return what fits `query` best; `report` hears how far the index is meanwhile.

    Raises `RepoError` where there is no repository.
    """
    async with _opened(invocation) as (retriever, sources):
        chunks = await _reported(retriever.search(sources, query, limit), retriever, sources, report)
        return Searched(chunks, retriever.status(sources))


async def build_index(invocation: Invocation, report: Report) -> IndexFacts:
    """Index the user's checkout as it is now. Raises `RepoError` where there is no repository."""
    async with _opened(invocation) as (retriever, sources):
        await _reported(retriever.build(sources), retriever, sources, report)
        status = retriever.status(sources)
        root = sources.root
    return IndexFacts(root, status, await _cache_facts())


async def index_facts(invocation: Invocation) -> IndexFacts:
    """Return what is kept, what of it is the saved index of this repo, and what no index takes in; nothing is indexed.

    Raises `RepoError` where there is no repository.
    """
    from agent_workbench.adapters.retrieval.indexer.indexable_files import (
        ExcludedPaths,
        count_left_out,
        count_submodules,
    )

    repo, settings = await trusted_repo(invocation)
    sources = await repo.repository.checkout_files()
    paths, excluded = await sources.list_files(), ExcludedPaths(settings.searched.exclude)
    left_out = await asyncio.to_thread(count_left_out, sources.root, paths, excluded)
    submodules = await asyncio.to_thread(count_submodules, sources.root)
    saved = await asyncio.to_thread(_saved, sources.root, settings.searched)
    status = replace(saved, left_out=left_out, submodules=submodules)
    return IndexFacts(sources.root, status, await _cache_facts())


async def clear_index(invocation: Invocation, *, everything: bool) -> int:
    """Remove the index of this repo (of all repos: `everything`); return how many bytes.

    Raises `RepoError` where there is no repository, `StorageError` where the disk refuses.
    """
    from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
    from agent_workbench.system.user_dirs import cache_dir

    root = "" if everything else (await _own_files(invocation)).root
    return await asyncio.to_thread(CacheFolder(cache_dir()).clear, root)


def _saved(root: str, settings: RetrievalSettings) -> IndexStatus:
    """Return what the saved index of a folder holds, nothing where none can be used."""
    from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
    from agent_workbench.adapters.retrieval.indexer.saved_index import load_saved
    from agent_workbench.system.user_dirs import cache_dir

    saved = load_saved(CacheFolder(cache_dir()).snapshot_of(root), settings)
    if saved is None:
        return IndexStatus()
    view = saved.index.view
    return IndexStatus(files=view.files, chunks=view.chunks, binary=len(saved.stamps) - view.files)


@asynccontextmanager
async def _opened(invocation: Invocation) -> "AsyncIterator[tuple[CodeRetriever, Sources]]":
    """Yield the code search and the user's own files for it; it is closed again."""
    from agent_workbench.bootstrap.code_search import code_retriever

    repo, settings = await trusted_repo(invocation)
    sources = await repo.repository.checkout_files()
    retriever = await asyncio.to_thread(code_retriever, settings, invocation.environ)
    try:
        yield retriever, sources
    finally:
        await retriever.close()


async def _own_files(invocation: Invocation) -> "Sources":
    repo, _ = await trusted_repo(invocation)
    return await repo.repository.checkout_files()


async def _cache_facts() -> "CacheFacts":
    from agent_workbench.adapters.retrieval.cache_folder import CacheFolder
    from agent_workbench.system.user_dirs import cache_dir

    return await asyncio.to_thread(CacheFolder(cache_dir()).facts)


async def _reported(
    doing: Coroutine[None, None, _Result], retriever: "CodeRetriever", sources: "Sources", report: Report
) -> _Result:
    """Return what comes of `doing`, reporting how far the index is until then."""
    work = asyncio.create_task(doing)
    try:
        while not (await asyncio.wait({work}, timeout=REPORT_SECONDS))[0]:
            report(retriever.status(sources))
    finally:
        work.cancel()
        await asyncio.wait({work})
    return work.result()
