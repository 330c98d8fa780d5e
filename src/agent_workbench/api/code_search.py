"""Search for code and playbooks in the user's checkout, care of the index, and its evaluation."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.diagnostics import SearchFigures
from agent_workbench.core.errors import RepoError
from agent_workbench.core.playbooks import PlaybookSearch
from agent_workbench.core.repo.retrieval import CacheFacts, Chunk, CodeQuery, IndexStatus
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Settings

if TYPE_CHECKING:
    from agent_workbench.adapters.retrieval.retriever import CodeRetriever
    from agent_workbench.core.ports.workspace import Sources


Report = Callable[[IndexStatus], None]
REPORT_SECONDS = 0.1
_Result = TypeVar("_Result")

Say = Callable[[str], None]


class Searched(Struct, frozen=True):
    """Found chunks, best first, and the status of the index."""

    chunks: tuple[Chunk, ...]
    status: IndexStatus


class IndexFacts(Struct, frozen=True):
    """Root of the repo, status of its index, and contents of the cache of all repos."""

    root: str
    status: IndexStatus
    cache: CacheFacts


async def search_checkout(
    invocation: Invocation, query: CodeQuery, limit: int, report: Report, show: Callable[[Searched], None]
) -> None:
    """Pass the chunks that match `query` best to `show`, then complete the index if that was not waited for.

    `report` is called with the status of the index meanwhile. Raises `RepoError` without a repository.
    """
    async with _opened(invocation) as (retriever, sources):
        chunks = await _reported(retriever.search(sources, query, limit), retriever, sources, report)
        status = retriever.status(sources)
        show(Searched(chunks, status))
        if not status.complete:
            await _reported(retriever.build(sources), retriever, sources, report)


async def build_index(invocation: Invocation, report: Report) -> IndexFacts:
    """Index the user's checkout as it is now. Raises `RepoError` without a repository."""
    async with _opened(invocation) as (retriever, sources):
        await _reported(retriever.build(sources), retriever, sources, report)
        return IndexFacts(sources.root, retriever.status(sources), await retriever.cache_facts())


async def index_facts(invocation: Invocation) -> IndexFacts:
    """Return the contents of the saved index of this repo and of the cache; nothing is indexed.

    Raises `RepoError` without a repository.
    """
    async with _opened(invocation) as (retriever, sources):
        status = await retriever.saved_status(sources)
        return IndexFacts(sources.root, status, await retriever.cache_facts())


async def clear_index(invocation: Invocation, *, everything: bool) -> int:
    """Remove the index of this repo, or of all repos (`everything`); return the removed bytes.

    Raises `RepoError` without a repository, `StorageError` if the disk refuses.
    """
    from agent_workbench.bootstrap.shared_resources import code_retriever

    if everything:
        retriever = await asyncio.to_thread(code_retriever, Settings(), invocation.environ)
        return await retriever.clear_cache()
    async with _opened(invocation) as (retriever, sources):
        return await retriever.clear_cache(sources.root)


@asynccontextmanager
async def _opened(invocation: Invocation) -> "AsyncIterator[tuple[CodeRetriever, Sources]]":
    """Yield the code search and the user's files, and close the search."""
    from agent_workbench.bootstrap.shared_resources import code_retriever

    repo, settings = await trusted_repo(invocation)
    sources = await repo.repository.checkout_files()
    retriever = await asyncio.to_thread(code_retriever, settings, invocation.environ)
    try:
        yield retriever, sources
    finally:
        await retriever.close()


async def _reported(
    doing: Coroutine[None, None, _Result], retriever: "CodeRetriever", sources: "Sources", report: Report
) -> _Result:
    """Return the result of `doing`; call `report` with the status of the index until then."""
    work = asyncio.create_task(doing)
    try:
        while not (await asyncio.wait({work}, timeout=REPORT_SECONDS))[0]:
            report(retriever.status(sources))
    finally:
        work.cancel()
        await asyncio.wait({work})
    return work.result()


class SearchEvaluation(Struct, frozen=True):
    """Figures of each method: for the questions that name no file they ask for (`strict`), and for all.

    `base` is the commit whose `files` were searched.
    """

    base: str
    files: int
    strict: tuple[SearchFigures, ...]
    all: tuple[SearchFigures, ...]


async def evaluate_search(invocation: Invocation, commits: int, say: Say) -> SearchEvaluation:
    """Measure on the last `commits` commits, in the tree before them; `say` is called with the progress.

    The checkout is not touched, and what is written is removed. Raises `RepoError` without a repository or with too
    short a history.
    """
    from agent_workbench.bootstrap.shared_resources import evaluate_code_search

    repo, settings = await trusted_repo(invocation)
    with tempfile.TemporaryDirectory(prefix="agent-eval-") as scratch:
        say("laying out the files of the past")
        sources = await repo.repository.past_tree(commits, Path(scratch, "tree"))
        found = await evaluate_code_search(settings, invocation.environ, Path(scratch, "cache"), sources, say)
        if found is None:
            raise RepoError(
                f"none of the last {commits} commits changed 1 to 3 source files that were there before",
                advice="ask for more of the past with --commits",
            )
        return SearchEvaluation(sources.base, found.files, found.strict, found.all)


async def search_playbooks(invocation: Invocation, words: str) -> PlaybookSearch:
    """Return the playbook that fits the words, else the nearest ones. Raises `RepoError` without a repository."""
    from agent_workbench.subjects.playbooks_wiring import playbooks

    repo, settings = await trusted_repo(invocation)
    retriever = await asyncio.to_thread(repo.shared.retriever, settings, invocation.environ)
    found = await asyncio.to_thread(playbooks, repo.root, settings, invocation, None, repo.is_trusted, retriever)
    try:
        return await found.search(await repo.repository.checkout_files(), words)
    finally:
        await found.close()
        await retriever.close()
