"""Worker process that stores vectors: `python -m agent_workbench.adapters.retrieval.vector_worker FOLDER MODEL`.

It alone opens chromadb, which crashes when two processes open one folder; so it takes the folder's lock first.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_workbench.adapters.retrieval.worker_process import (
    WorkerMessage,
    pack_texts,
    serve_messages,
    unpack_texts,
)
from agent_workbench.core.errors import LockedError
from agent_workbench.system.locks import FileLock, describe_holder

if TYPE_CHECKING:
    import chromadb
    import numpy as np
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


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


FORMAT = 1
# More than a session holds in memory, so that the contents of other branches stay too.
MAX_VECTORS = 80_000
_COLLECTION = f"contents-{FORMAT}"
# Present while chromadb opens the folder: a marker that is there before means that the last opening crashed.
_OPENING = "opening"
_BATCH = 1_000
# All vectors are read at once and chromadb's graph is never searched: it is built with the least effort.
_GRAPH: "CreateHNSWConfiguration" = {"space": "cosine", "ef_construction": 16, "max_neighbors": 8}


class ChromaStore:
    """The vectors in `folder`; a folder that is damaged or foreign is emptied. Blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._collection: chromadb.Collection | None = None

    def load(self) -> "tuple[list[str], Floats]":
        """Return the contents that have a vector, and the vectors; nothing where the folder cannot be read."""
        import numpy as np

        marker = self._folder / _OPENING
        if marker.exists():
            self.clear()
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            marker.touch()
            blobs, vectors = self._stored()
        except Exception:  # chromadb's errors have no common class
            self.clear()
            blobs, vectors = [], np.zeros((0, 0), dtype=np.float32)
        marker.unlink(missing_ok=True)
        return blobs, vectors

    def clear(self) -> None:
        """Remove all vectors by emptying the folder; never the target of a link."""
        self._collection = None
        if "chromadb" in sys.modules:
            # chromadb would go on with what it opened in this folder, or failed to.
            from chromadb.api.shared_system_client import SharedSystemClient

            SharedSystemClient.clear_system_cache()
        if self._folder.is_symlink() or self._folder.is_file():
            self._folder.unlink()
        elif self._folder.exists():
            shutil.rmtree(self._folder)
        self._folder.mkdir(parents=True, mode=0o700)

    def add(self, blobs: Sequence[str], vectors: "Floats") -> int:
        """Store vectors, in place of others where there would be too many; return the number of stored ones."""
        collection = self._open()
        spare = collection.count() + len(blobs) - MAX_VECTORS
        if spare > 0:
            gone = collection.get(limit=spare, include=[])["ids"]
            for first in range(0, len(gone), _BATCH):
                collection.delete(ids=gone[first : first + _BATCH])
        for first in range(0, len(blobs), _BATCH):
            some = slice(first, first + _BATCH)
            collection.upsert(ids=list(blobs[some]), embeddings=vectors[some])
        return collection.count()

    def _stored(self) -> "tuple[list[str], Floats]":
        import numpy as np

        collection = self._open()
        blobs: list[str] = []
        parts: list[Floats] = []
        for first in range(0, min(collection.count(), MAX_VECTORS), _BATCH):
            some = collection.get(limit=_BATCH, offset=first, include=["embeddings"])
            blobs += some["ids"]
            parts.append(np.asarray(some["embeddings"], dtype=np.float32))
        vectors = np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
        if vectors.shape[0] != len(blobs) or not np.isfinite(vectors).all():
            raise ValueError("the stored rows are no vectors")
        return blobs, vectors

    def _open(self) -> "chromadb.Collection":
        if self._collection is None:
            import chromadb
            from chromadb.config import Settings

            client = chromadb.PersistentClient(
                str(self._folder / "chroma"), settings=Settings(anonymized_telemetry=False, allow_reset=False)
            )
            self._collection = client.get_or_create_collection(
                _COLLECTION, embedding_function=None, configuration={"hnsw": _GRAPH}
            )
        return self._collection


if __name__ == "__main__":
    worker = StoreWorker(Path(sys.argv[1]), sys.argv[2])
    serve_messages({"open": worker.open, "clear": worker.clear, "add": worker.add}, MAX_SECONDS)
