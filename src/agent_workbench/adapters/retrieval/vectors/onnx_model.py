"""Vectors from an ONNX model in a folder of the user's, run in a process of its own."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_workbench.adapters.retrieval.vectors.embedding import EmbeddingFailed
from agent_workbench.adapters.retrieval.vectors.onnx_server import MOST_SECONDS
from agent_workbench.adapters.retrieval.worker_processes.frames import InvalidFrame
from agent_workbench.adapters.retrieval.worker_processes.messages import Message, ask, pack_texts
from agent_workbench.adapters.retrieval.worker_processes.process import WorkerLost, WorkerProcess

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_MODULE = "agent_workbench.adapters.retrieval.vectors.onnx_server"
_SECONDS = float(MOST_SECONDS)
# More at once takes memory by the hundred megabytes and is no faster.
_TEXTS_AT_ONCE = 4


class OnnxModel:
    """`EmbeddingModel`; the process begins with the first text and lives until `close`."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._child: WorkerProcess | None = None
        self._closed = False
        self._starting = threading.Lock()

    @property
    def name(self) -> str:
        return f"onnx-{sha256(str(self._folder).encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"

    async def embed(self, texts: Sequence[str]) -> "Floats":
        return await asyncio.to_thread(self._embed, texts)

    async def close(self) -> None:
        self._closed = True  # whoever waits for his turn starts no process any more
        child, self._child = self._child, None
        if child is not None:
            await asyncio.to_thread(child.end)

    def _embed(self, texts: Sequence[str]) -> "Floats":
        import numpy as np

        with self._starting:
            try:
                if self._child is None and not self._closed:
                    self._child = WorkerProcess(["-m", _MODULE, str(self._folder)], self._environ)
                parts = [
                    self._some(texts[first : first + _TEXTS_AT_ONCE]) for first in range(0, len(texts), _TEXTS_AT_ONCE)
                ]
            except (WorkerLost, InvalidFrame) as error:
                child, self._child = self._child, None
                if child is not None:
                    child.end()
                raise EmbeddingFailed(f"the model in {self._folder}: {error}") from error
        return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)

    def _some(self, texts: Sequence[str]) -> "Floats":
        if self._child is None:
            raise WorkerLost("its process was ended")
        answer = ask(self._child, Message("embed", {}, {"texts": pack_texts(texts)}), _SECONDS)
        vectors = cast("Floats", answer.array("vectors", "float32", 2))
        if len(vectors) != len(texts):
            raise InvalidFrame("not as many vectors as texts")
        return vectors
