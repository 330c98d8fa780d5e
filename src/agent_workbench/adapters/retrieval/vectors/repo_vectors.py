"""Vectors that a model makes of the files' texts: slowly, so that what is made is kept as soon as possible."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.vectors.corpus import Corpus
from agent_workbench.adapters.retrieval.vectors.embedding import EmbeddingFailed, EmbeddingModel, parts_of
from agent_workbench.adapters.retrieval.vectors.lsa import unit
from agent_workbench.adapters.retrieval.vectors.store_process import VectorStoreProcess
from agent_workbench.adapters.retrieval.vectors.vector_table import FileVectors, VectorTable
from agent_workbench.adapters.retrieval.vectors.vectors import HELD, LEARNING, READY, Asked, OnReady, Read
from agent_workbench.adapters.retrieval.worker_processes.process import WorkerLost
from agent_workbench.core.background import in_background

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_FILES_AT_ONCE = 8
# After so many files what there is can be searched, and is kept.
_WORTH_KEEPING = 200
_MOST_QUERY_CHARS = 2_000
# A search waits no longer for the query's vector.
_QUERY_SECONDS = 2.0


class RepoVectors:
    """`Vectors` by an `EmbeddingModel`; at most so many files as fit into memory."""

    def __init__(self, model: EmbeddingModel, folder: Path, environ: Mapping[str, str]) -> None:
        self._model = model
        self._keeper = VectorStoreProcess(folder, model.name, environ)
        self._one_at_a_time = asyncio.Lock()
        self._held = VectorTable()
        self._loaded = False
        self._unkept: list[str] = []
        self._lost = ""
        self._doing = LEARNING
        self._asking: asyncio.Task[Floats] | None = None

    @property
    def standing(self) -> str:
        """How they stand."""
        return self._lost or self._doing

    async def update(self, corpus: Corpus, read: Read, on_ready: OnReady) -> None:
        async with self._one_at_a_time:
            if self._lost:
                return
            try:
                await self._update(corpus, read, on_ready)
            except EmbeddingFailed as error:
                self._doing = f"off: {error}"
            except (WorkerLost, OSError) as error:
                self._lost = f"off: {error}"
            finally:
                await self._keeper.end()

    async def similar(self, files: FileVectors, asked: Asked, limit: int) -> dict[str, float]:
        # A query that nobody waits for any more still has its thread: no second one, or soon no thread would be left.
        if self._lost or not files.paths or self._asking is not None:
            return {}
        asking = self._asking = in_background(
            self._model.embed([asked.text[:_MOST_QUERY_CHARS]]), expected=(EmbeddingFailed,)
        )
        asking.add_done_callback(self._hear)
        if not (await asyncio.wait({asking}, timeout=_QUERY_SECONDS))[0]:
            self._doing = "off: the model is slow to answer"
            return {}
        try:
            vectors = asking.result()
        except EmbeddingFailed as error:
            self._doing = f"off: {error}"
            return {}
        if vectors.shape[1] != files.matrix.shape[1]:
            return {}
        self._doing = READY if self._doing.startswith("off") else self._doing
        return await asyncio.to_thread(files.nearest, vectors[0], limit)

    async def close(self) -> None:
        await self._keeper.end()
        await self._model.close()

    def _hear(self, _: "asyncio.Task[Floats]") -> None:
        self._asking = None

    async def _update(self, corpus: Corpus, read: Read, on_ready: OnReady) -> None:
        if not self._loaded:
            _, _, self._held = await self._keeper.open(self._wait)
            self._loaded = True
        missing = self._held.missing(corpus.blobs)
        if len(missing) < len(corpus.blobs):
            on_ready(await asyncio.to_thread(self._held.of_files, corpus.paths, corpus.blobs))
        for first in range(0, len(missing), _FILES_AT_ONCE):
            self._doing = f"{LEARNING} {first:,} of {len(missing):,}"
            some = missing[first : first + _FILES_AT_ONCE]
            await self._add(corpus, [corpus.paths[each] for each in some], [corpus.blobs[each] for each in some], read)
            if len(self._unkept) >= _WORTH_KEEPING or first + _FILES_AT_ONCE >= len(missing):
                on_ready(await asyncio.to_thread(self._held.of_files, corpus.paths, corpus.blobs))
                await self._keep()
        self._doing = READY

    async def _add(self, corpus: Corpus, paths: Sequence[str], blobs: Sequence[str], read: Read) -> None:
        """Make the vectors of these files; one that cannot be read any more gets none, and is asked for again."""
        import numpy as np

        contents = await read(paths)
        parts = [parts_of(contents[path]) if path in contents else [] for path in paths]
        if not any(parts):
            return
        made = await self._model.embed([part for of_file in parts for part in of_file])
        if self._held.dimensions not in {0, made.shape[1]}:
            # Another model answers under the same name: what it did not make is of no use.
            await self._begin_anew()
        ends = np.cumsum([len(of_file) for of_file in parts]).tolist()
        found = [blob for blob, of_file in zip(blobs, parts, strict=True) if of_file]
        sums = [made[end - len(of_file) : end].sum(axis=0) for end, of_file in zip(ends, parts, strict=True) if of_file]
        self._held.add(found, unit(np.stack(sums)), corpus.blobs)
        self._unkept += found

    async def _keep(self) -> None:
        """Store what is not stored yet; a few are made again at the next start sooner than a process is started."""
        if not self._keeper.pid and len(self._unkept) < _FILES_AT_ONCE:
            return
        if not self._keeper.pid:
            await self._keeper.open(self._wait)
        blobs, vectors = await asyncio.to_thread(self._held.of_contents, self._unkept)
        await self._keeper.keep(blobs, vectors)
        self._unkept.clear()

    async def _begin_anew(self) -> None:
        if not self._keeper.pid:
            await self._keeper.open(self._wait)
        await self._keeper.begin(None, 0)
        self._held = VectorTable()
        self._unkept.clear()

    def _wait(self) -> None:
        self._doing = HELD
