"""Vectors learnt from the repo itself: no model is needed, and nothing but its words."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from agent_workbench.adapters.retrieval.vectors.corpus import Corpus
from agent_workbench.adapters.retrieval.vectors.lsa import Projection
from agent_workbench.adapters.retrieval.vectors.store_process import VectorStoreProcess
from agent_workbench.adapters.retrieval.vectors.vector_table import FileVectors, VectorTable
from agent_workbench.adapters.retrieval.vectors.vectors import HELD, LEARNING, READY, Asked, OnReady, Read
from agent_workbench.adapters.retrieval.worker_processes.process import WorkerLost

# Raised whenever vectors come out differently: others are made anew.
_MODEL = "builtin-1"
# When this share of the files came after learning, it is learnt anew.
_FRESH_SHARE = 0.5
# Fewer are folded in again at the next start sooner than a process is started to keep them.
_WORTH_KEEPING = 200
# So few files are searched as well without vectors.
_FEWEST = 30
_FOLDED_AT_ONCE = 8_000


class LearntVectors:
    """`Vectors` by latent semantic analysis. Learning and keeping are done by a process that ends when it is done."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._keeper = VectorStoreProcess(folder, _MODEL, environ)
        self._one_at_a_time = asyncio.Lock()
        self._loaded = False
        self._lost = ""
        self._doing = LEARNING
        self._projection: Projection | None = None
        self._taught = 0
        self._held: VectorTable = VectorTable()
        self._unkept: set[str] = set()
        self._learnt_now = False

    @property
    def standing(self) -> str:
        """How they stand."""
        return self._lost or self._doing

    @property
    def keeper_pid(self) -> int:
        """The process that learns and keeps, 0 while there is none."""
        return self._keeper.pid

    async def update(self, corpus: Corpus, read: Read, on_ready: OnReady) -> None:
        async with self._one_at_a_time:
            if self._lost:
                return
            try:
                await self._update(corpus, on_ready)
            except (WorkerLost, OSError) as error:
                self._lost = f"off: {error}"
            finally:
                await self._keeper.end()

    async def similar(self, files: FileVectors, asked: Asked, limit: int) -> dict[str, float]:
        projection = self._projection
        if projection is None or self._lost:
            return {}
        return await asyncio.to_thread(_similar, projection, files, asked, limit)

    async def close(self) -> None:
        await self._keeper.end()

    async def _update(self, corpus: Corpus, on_ready: OnReady) -> None:
        if len(corpus.paths) < _FEWEST:
            self._doing = "off: too few files to learn from"
            return
        if not self._loaded:
            await self._open()
            self._loaded = True
        if self._outgrown(corpus) and not self._keeper.pid:
            await self._open()  # another session may have learnt meanwhile
        if self._outgrown(corpus):
            await self._learn(corpus)
        if self._projection is None:
            self._doing = "off: too few words to learn from"
            return
        await asyncio.to_thread(self._fold_in, self._projection, corpus)
        on_ready(await asyncio.to_thread(self._held.of_files, corpus.paths, corpus.blobs))
        self._doing = READY
        if len(self._unkept) >= min(_WORTH_KEEPING, len(corpus.paths)):
            await self._keep()

    def _outgrown(self, corpus: Corpus) -> bool:
        """Return whether what was learnt is too old for these files."""
        if self._projection is None:
            return True
        came_later = max(0, self._held.count - self._taught) + len(self._held.missing(corpus.blobs))
        return came_later > _FRESH_SHARE * max(self._taught, len(corpus.paths))

    async def _open(self) -> None:
        projection, taught, held = await self._keeper.open(self._wait)
        if projection is not None or self._projection is None:
            self._projection, self._taught, self._held = projection, taught, held
            self._unkept, self._learnt_now = set(), False
        self._doing = READY if self._projection else LEARNING

    def _wait(self) -> None:
        if self._projection is None:
            self._doing = HELD

    async def _learn(self, corpus: Corpus) -> None:
        projection = await self._keeper.train(corpus)
        if projection is not None:
            self._projection, self._taught, self._learnt_now = projection, len(corpus.paths), True
            self._held, self._unkept = VectorTable(), set()

    def _fold_in(self, projection: Projection, corpus: Corpus) -> None:
        missing = self._held.missing(corpus.blobs)
        for first in range(0, len(missing), _FOLDED_AT_ONCE):
            some = corpus.of_files(missing[first : first + _FOLDED_AT_ONCE])
            self._held.add(some.blobs, projection.file_vectors(some), corpus.blobs)
            self._unkept.update(some.blobs)

    async def _keep(self) -> None:
        """Store what is not stored yet, unless another session learnt anew meanwhile: then its vectors stay."""
        if not self._keeper.pid:
            kept, _, _ = await self._keeper.open(self._wait)
            if not _same(kept, self._projection):
                return
        if self._learnt_now:
            await self._keeper.begin(self._projection, self._taught)
            self._learnt_now = False
        blobs, vectors = await asyncio.to_thread(self._held.of_contents, sorted(self._unkept))
        await self._keeper.keep(blobs, vectors)
        self._unkept.clear()


def _same(one: Projection | None, other: Projection | None) -> bool:
    return one is not None and other is not None and one.directions.tobytes() == other.directions.tobytes()


def _similar(projection: Projection, files: FileVectors, asked: Asked, limit: int) -> dict[str, float]:
    vector = projection.query(asked.words)
    if vector is None or files.matrix.shape[1:] != vector.shape:
        return {}
    return files.nearest(vector, limit)
