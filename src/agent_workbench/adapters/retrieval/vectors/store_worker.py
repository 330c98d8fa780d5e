"""Worker process of a vector store: `python -m agent_workbench.adapters.retrieval.vectors.store_worker FOLDER MODEL`.

It alone opens chromadb, which crashes when two processes open one folder; so it takes the folder's lock first.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_workbench.adapters.retrieval.vectors.chroma_store import ChromaStore
from agent_workbench.adapters.retrieval.worker_processes.messages import (
    WorkerMessage,
    pack_texts,
    serve_messages,
    unpack_texts,
)
from agent_workbench.core.errors import LockedError
from agent_workbench.system.locks import FileLock, describe_holder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOCK = "lock"
MAX_SECONDS = 600


class StoreWorker:
    """The requests that the process answers, each with a message."""

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._store = ChromaStore(folder / model)
        self._lock = FileLock(folder / LOCK, describe_holder())

    def open(self, _: WorkerMessage) -> WorkerMessage:
        """Take the lock and return the stored vectors, or `held` with the lock's holder."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._lock.acquire()
        except LockedError as error:
            return WorkerMessage("held", {"by": error.holder})
        blobs, vectors = self._store.load()
        return WorkerMessage("opened", {}, {"blobs": pack_texts(blobs), "vectors": vectors})

    def clear(self, _: WorkerMessage) -> WorkerMessage:
        """Remove the stored vectors."""
        self._store.clear()
        return WorkerMessage("cleared")

    def add(self, message: WorkerMessage) -> WorkerMessage:
        """Store vectors."""
        vectors = cast("NDArray[np.float32]", message.array("vectors", "float32", 2))
        count = self._store.add(unpack_texts(message.array("blobs", "uint8", 1)), vectors)
        return WorkerMessage("added", {"vectors": count})


if __name__ == "__main__":
    worker = StoreWorker(Path(sys.argv[1]), sys.argv[2])
    serve_messages({"open": worker.open, "clear": worker.clear, "add": worker.add}, MAX_SECONDS)
