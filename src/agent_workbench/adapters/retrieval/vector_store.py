"""Session's side of a vector store: its worker process is started when needed and ended soon."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_workbench.adapters.retrieval.vector_table import VectorTable
from agent_workbench.adapters.retrieval.vector_worker import LOCK
from agent_workbench.adapters.retrieval.worker_frames import InvalidFrame
from agent_workbench.adapters.retrieval.worker_messages import WorkerMessage, ask, pack_texts, unpack_texts
from agent_workbench.adapters.retrieval.worker_process import WorkerLost, WorkerProcess, in_thread
from agent_workbench.core.errors import StorageError
from agent_workbench.system.locks import lock_holder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_MODULE = "agent_workbench.adapters.retrieval.vector_worker"
# On a machine under load Python alone takes seconds to load chromadb.
_OPEN_SECONDS = 120.0
_ANSWER_SECONDS = 120.0
_POLL_SECONDS = 0.25
_BATCH = 4_000


class VectorStoreProcess:
    """The stored vectors of one repo (`folder`) and model. Every failure is `WorkerLost`."""

    def __init__(self, folder: Path, model: str, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._model = model
        self._environ = environ
        self._worker: WorkerProcess | None = None

    @property
    def pid(self) -> int:
        """Id of the process, 0 while there is none."""
        return self._worker.pid if self._worker else 0

    async def open(self, on_held: Callable[[], None]) -> VectorTable:
        """Start the process and return the stored vectors.

        While another session holds the folder, `on_held` is called and the process is started later.
        """
        while True:
            if await asyncio.to_thread(self._is_held):
                on_held()
                await asyncio.sleep(_POLL_SECONDS)
                continue
            await self.end()
            await in_thread(self._start)
            answer = await self._ask(WorkerMessage("open"), _OPEN_SECONDS)
            if answer.word == "opened":
                return await asyncio.to_thread(_table, answer)

    async def clear(self) -> None:
        """Remove the stored vectors."""
        await self._ask(WorkerMessage("clear"), _ANSWER_SECONDS)

    async def add(self, blobs: Sequence[str], vectors: "Floats") -> None:
        """Store vectors by their contents."""
        for first in range(0, len(blobs), _BATCH):
            some = slice(first, first + _BATCH)
            arrays = {"blobs": pack_texts(blobs[some]), "vectors": vectors[some]}
            await self._ask(WorkerMessage("add", {}, arrays), _ANSWER_SECONDS)

    async def end(self) -> None:
        """End the process, if it runs, so that its memory and the folder are free."""
        worker, self._worker = self._worker, None
        if worker:
            await asyncio.shield(asyncio.to_thread(worker.end))

    def _start(self) -> None:
        self._worker = WorkerProcess(["-m", _MODULE, str(self._folder), self._model], self._environ)

    def _is_held(self) -> bool:
        try:
            return bool(lock_holder(self._folder / LOCK))
        except StorageError as error:
            raise WorkerLost(str(error)) from error

    async def _ask(self, message: WorkerMessage, seconds: float) -> WorkerMessage:
        if self._worker is None:
            raise WorkerLost("its process does not run")
        return await asyncio.to_thread(ask, self._worker, message, seconds)


def _table(answer: WorkerMessage) -> VectorTable:
    """Return the vectors of an answer; none where vectors and contents do not fit together."""
    try:
        blobs = unpack_texts(answer.array("blobs", "uint8", 1))
        vectors = cast("Floats", answer.array("vectors", "float32", 2))
    except InvalidFrame as error:
        raise WorkerLost(f"its process answered nonsense: {error}") from error
    return VectorTable(blobs, vectors) if blobs and len(blobs) == len(vectors) else VectorTable()
