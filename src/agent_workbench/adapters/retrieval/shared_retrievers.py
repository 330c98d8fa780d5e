"""Retrievers of a process, shared by the sessions with equal settings."""

from collections.abc import Awaitable, Callable, Hashable

from agent_workbench.adapters.retrieval.note_vectors import NOTES, NoteVectors
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery, Completion, IndexStatus


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
