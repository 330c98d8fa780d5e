"""The process that keeps a repo's vectors, as seen from the session: started when needed, waited for, ended soon."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_workbench.adapters.retrieval.vectors.chroma_store import pack_learnt
from agent_workbench.adapters.retrieval.vectors.corpus import Corpus
from agent_workbench.adapters.retrieval.vectors.lsa import Projection
from agent_workbench.adapters.retrieval.vectors.store_worker import LOCK, MOST_SECONDS, describe_corpus
from agent_workbench.adapters.retrieval.vectors.vector_table import VectorTable
from agent_workbench.adapters.retrieval.worker_processes.frames import InvalidFrame
from agent_workbench.adapters.retrieval.worker_processes.messages import Message, ask, pack_texts, unpack_texts
from agent_workbench.adapters.retrieval.worker_processes.process import WorkerLost, WorkerProcess
from agent_workbench.adapters.retrieval.worker_processes.threads import in_thread
from agent_workbench.core.errors import StorageError
from agent_workbench.system.locks import lock_holder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_MODULE = "agent_workbench.adapters.retrieval.vectors.store_worker"
# On a machine under load Python alone takes seconds to load chromadb.
_OPEN_SECONDS = 120.0
_TRAIN_SECONDS = float(MOST_SECONDS)
_KEEP_SECONDS = 120.0
_LOOK_SECONDS = 1.0
_AT_ONCE = 4_000


class VectorStoreProcess:
    """One for each repo's `folder` and model of vectors. What fails is `WorkerLost`."""

    def __init__(self, folder: Path, model: str, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._model = model
        self._environ = environ
        self._child: WorkerProcess | None = None

    @property
    def pid(self) -> int:
        """Its process id, 0 while it does not run."""
        return self._child.pid if self._child else 0

    async def open(self, say_held: Callable[[], None]) -> "tuple[Projection | None, int, VectorTable]":
        """Start it as soon as no other session holds the folder; return what is kept, and how many files taught it."""
        while True:
            if await asyncio.to_thread(self._is_held):
                say_held()
                await asyncio.sleep(_LOOK_SECONDS)
                continue
            await self.end()
            await in_thread(self._start)
            answer = await self._ask(Message("open"), _OPEN_SECONDS)
            if answer.word == "opened":
                return await asyncio.to_thread(_read, answer)

    async def train(self, corpus: Corpus) -> Projection | None:
        """Learn from these files; None where there are too few."""
        answer = await self._ask(await asyncio.to_thread(describe_corpus, corpus), _TRAIN_SECONDS)
        return (await asyncio.to_thread(_projection, answer))[0]

    async def begin(self, projection: Projection | None, taught: int) -> None:
        """Forget what is kept, and keep what was learnt, if anything was."""
        learnt = pack_learnt(projection.words, projection.weights, projection.directions, taught) if projection else {}
        await self._ask(Message("begin", {}, learnt), _KEEP_SECONDS)

    async def keep(self, blobs: Sequence[str], vectors: "Floats") -> None:
        """Keep these vectors."""
        for first in range(0, len(blobs), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            arrays = {"blobs": pack_texts(blobs[some]), "vectors": vectors[some]}
            await self._ask(Message("keep", {}, arrays), _KEEP_SECONDS)

    async def end(self) -> None:
        """End it, so that its memory and the folder are free; does nothing when it does not run."""
        child, self._child = self._child, None
        if child:
            await asyncio.shield(asyncio.to_thread(child.end))

    def _start(self) -> None:
        self._child = WorkerProcess(["-m", _MODULE, str(self._folder), self._model], self._environ)

    def _is_held(self) -> bool:
        try:
            return bool(lock_holder(self._folder / LOCK))
        except StorageError as error:
            raise WorkerLost(str(error)) from error

    async def _ask(self, message: Message, seconds: float) -> Message:
        if self._child is None:
            raise WorkerLost("its process does not run")
        return await asyncio.to_thread(ask, self._child, message, seconds)


def _read(answer: Message) -> "tuple[Projection | None, int, VectorTable]":
    """Return what was kept; of what does not fit together nothing is believed."""
    try:
        projection, taught = _projection(answer)
        blobs = unpack_texts(answer.array("blobs", "uint8", 1))
        vectors = cast("Floats", answer.array("vectors", "float32", 2))
    except InvalidFrame as error:
        raise WorkerLost(f"its process answered nonsense: {error}") from error
    fits = projection is None or vectors.shape[1] == projection.dimensions
    if not blobs or len(blobs) != len(vectors) or not fits:
        return projection, taught, VectorTable()
    return projection, taught, VectorTable(blobs, vectors)


def _projection(answer: Message) -> tuple[Projection | None, int]:
    if "directions" not in answer.arrays:
        return None, 0
    words = unpack_texts(answer.array("words", "uint8", 1))
    weights = cast("Floats", answer.array("weights", "float32", 1))
    directions = cast("Floats", answer.array("directions", "float32", 2))
    if not len(words) == len(weights) == len(directions):
        raise InvalidFrame("what was learnt does not fit together")
    return Projection(words, weights, directions), int(answer.array("taught", "int64", 1)[0])
