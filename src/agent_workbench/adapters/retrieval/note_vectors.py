"""Vectors of short texts, such as notes and playbooks: made by the code search's model, stored beside its vectors."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from agent_workbench.adapters.retrieval.repo_vectors import EmbeddingModel, IndexedContents, Read, RepoVectors
from agent_workbench.adapters.retrieval.vector_table import FileVectors
from agent_workbench.core.background import in_background

NOTES, PLAYBOOKS = "notes", "playbooks"
"""Names of collections of texts, and of their vectors in the folder of a repo's vectors."""
# A search waits no longer for notes that were never embedded; the next one may find them.
_FIRST_SECONDS = 8.0


class NoteVectors:
    """Similarity of one repo's texts of a collection to words; `folder` holds the repo's vectors."""

    def __init__(
        self, model: EmbeddingModel, folder: Path, environ: Mapping[str, str], collection: str = NOTES
    ) -> None:
        self._vectors = RepoVectors(model, folder / collection, environ)
        self._files: FileVectors | None = None
        self._embedded: Mapping[str, str] = {}
        self._running: asyncio.Task[None] | None = None

    @property
    def status(self) -> str:
        """State in a few words."""
        return self._vectors.status

    def update(self, blobs: Mapping[str, str], read: Read) -> None:
        """Embed in the background the notes (blob id by name) that have no vector; `read` returns their bytes."""
        if blobs != self._embedded and (self._running is None or self._running.done()):
            self._embedded = dict(blobs)
            contents = IndexedContents(list(blobs), list(blobs.values()))
            self._running = in_background(self._vectors.update(contents, read, self._hold))

    async def nearest(self, words: str, limit: int) -> Mapping[str, float]:
        """Return the names of at most `limit` notes that are similar to the words, with their similarity."""
        files = await self._first()
        return await self._vectors.nearest(files, words, limit) if files is not None else {}

    async def cosines(self, words: str) -> Mapping[str, float]:
        """Return the cosine of the words and each text that has a vector."""
        files = await self._first()
        return await self._vectors.cosines(files, words) if files is not None else {}

    async def close(self) -> None:
        """End what runs in the background."""
        if self._running is not None:
            self._running.cancel()
        await self._vectors.close()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    async def _first(self) -> FileVectors | None:
        """Return the vectors; those that were never made are waited for, for a while."""
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=_FIRST_SECONDS if self._files is None else 0)
        return self._files

    def _hold(self, files: FileVectors) -> None:
        self._files = files
