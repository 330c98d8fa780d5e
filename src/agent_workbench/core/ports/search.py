"""Ports of the code search, and of the notes that outlive a task."""

from typing import Protocol

from agent_workbench.core.knowledge import KnowledgeHit, KnowledgeNote
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


class Knowledge(Protocol):
    """Notes that outlive a task. Any method may raise `StorageError`; a missing folder is an empty one."""

    async def notes(self) -> tuple[KnowledgeNote, ...]:
        """Return all notes by name, those that cannot be read with their `problem`."""

    async def has_notes(self) -> bool:
        """Return True if there is a note that can be searched."""

    async def read(self, name: str) -> KnowledgeNote | None:
        """Return the note with this name, with its `problem` if it cannot be read; None if there is none."""

    async def search(self, words: str, limit: int) -> tuple[KnowledgeHit, ...]:
        """Return at most `limit` notes that fit the words, best first and then by name; none if nothing fits."""

    async def problem(self) -> str:
        """Return in one sentence why some notes, or all, are not searched; empty if all are."""

    async def write(self, note: KnowledgeNote, before: str | None) -> None:
        """Put the note's text in place of `before` (None: no such note), whole and durably.

        Raises `StorageError` and changes nothing if something else stands there, `UsageError` for a bad name.
        """

    async def close(self) -> None:
        """Release what the search holds."""
