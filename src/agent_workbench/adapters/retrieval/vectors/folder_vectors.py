"""The vectors of the folders that are searched: one set for each repo, brought up to date behind the index."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.vectors.corpus import corpus_of
from agent_workbench.adapters.retrieval.vectors.vector_table import FileVectors
from agent_workbench.adapters.retrieval.vectors.vectors import Asked, NoVectors, Vectors, make_vectors
from agent_workbench.core.background import in_background
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.settings import EmbeddingSettings

if TYPE_CHECKING:
    from agent_workbench.adapters.retrieval.index.view import IndexView


class FolderVectors:
    """What a retriever asks; `folder_of` tells where the vectors of a searched folder's repo are kept."""

    def __init__(
        self, settings: EmbeddingSettings, folder_of: Callable[[str], Path], environ: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._folder_of = folder_of
        self._environ = environ
        self._of_repo: dict[Path, Vectors] = {}
        self._of_root: dict[str, Vectors] = {}
        self._files: dict[str, FileVectors] = {}
        self._wanted: dict[str, tuple[Sources, IndexView]] = {}
        self._begun: set[str] = set()
        self._running: dict[str, asyncio.Task[None]] = {}

    def standing(self, root: str) -> str:
        """Return in a few words how the vectors of the folder `root` stand, empty before anything was begun."""
        vectors = self._of_root.get(root)
        return vectors.standing if vectors else ""

    def begin(self, sources: Sources, view: "IndexView") -> None:
        """Bring the vectors up to the index's `view` in the background; of several views only the newest counts."""
        root = sources.root
        self._begun.add(root)
        self._wanted[root] = (sources, view)
        if root not in self._running:
            self._running[root] = in_background(self._catch_up(root))

    async def settled(self, root: str) -> None:
        """Return when nothing is done for this folder any more."""
        if root in self._running:
            await asyncio.wait({self._running[root]})

    async def similar(self, root: str, text: str, words: Mapping[str, int], limit: int) -> dict[str, float]:
        """Return at most `limit` files of the folder that are like the query, best first, with how much (0 to 1)."""
        files, vectors = self._files.get(root), self._of_root.get(root)
        return await vectors.similar(files, Asked(text, words), limit) if files and vectors else {}

    def forget(self, root: str) -> None:
        """Let go of what is held for a folder that is not searched any more."""
        self._begun.discard(root)
        self._wanted.pop(root, None)
        self._of_root.pop(root, None)
        self._files.pop(root, None)

    async def close(self) -> None:
        """End what runs in the background."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*(vectors.close() for vectors in self._of_repo.values()))
        await asyncio.gather(*running, return_exceptions=True)

    async def _catch_up(self, root: str) -> None:
        try:
            while wanted := self._wanted.pop(root, None):
                sources, view = wanted
                if not view.files:
                    self._files.pop(root, None)
                    continue
                vectors = await self._vectors(root)
                if isinstance(vectors, NoVectors):
                    continue
                corpus = await asyncio.to_thread(corpus_of, view)
                await vectors.update(corpus, sources.read_files, partial(self._hold, root))
        finally:
            del self._running[root]

    async def _vectors(self, root: str) -> Vectors:
        """Return the one set that all folders of the repo share, though several of them may ask at once."""
        known = self._of_root.get(root)
        if known is None:
            folder, made = await asyncio.to_thread(self._make, root)
            known = self._of_repo.setdefault(folder, made)
            if root in self._begun:
                self._of_root[root] = known
        return known

    def _make(self, root: str) -> tuple[Path, Vectors]:
        folder = self._folder_of(root)
        return folder, make_vectors(self._settings, folder, self._environ)

    def _hold(self, root: str, files: FileVectors) -> None:
        if root in self._begun:  # it may be forgotten meanwhile
            self._files[root] = files
