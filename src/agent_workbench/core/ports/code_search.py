"""Port of the code search."""

from typing import Protocol

from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery, Completion, IndexStatus


class Retriever(Protocol):
    """Code search in a folder's files as they are at the time of the search."""

    def prepare(self, sources: Sources) -> object:
        """Start indexing in the background."""

    def status(self, sources: Sources) -> IndexStatus:
        """Return the progress of the folder's index without blocking."""

    async def symbols(self, sources: Sources, prefix: str, limit: int) -> tuple[Completion, ...]:
        """Return definitions whose names begin with `prefix` or contain it, in what is indexed so far, best first.

        Indexing begins in the background if nothing is indexed yet.
        """

    async def close(self) -> None:
        """Stop the background work."""

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        """Return the best chunks, best first. Unless `complete`, search what is indexed so far, without waiting."""
