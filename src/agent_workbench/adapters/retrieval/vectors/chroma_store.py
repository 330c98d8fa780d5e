"""Vectors on the disk, in chromadb, beside what was learnt to make them. Only a process of its own may use this.

A folder holds the vectors of one model, by the names of the contents they were made of: git blobs.
"""

import shutil
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.worker_processes.messages import pack_texts
from agent_workbench.system.atomic_files import write_atomically

if TYPE_CHECKING:
    import chromadb
    import numpy as np
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Arrays = Mapping[str, NDArray[np.generic]]

FORMAT = 1
# More than a session holds, so that contents of other branches stay too.
MOST_VECTORS = 80_000
_COLLECTION = f"contents-{FORMAT}"
_LEARNT = "learnt.npz"
# There while chromadb opens what is stored: whoever finds it knows that this ended badly the last time.
_OPENING = "opening"
_AT_ONCE = 1_000
# Nobody searches in chromadb's graph, all vectors are read at once: so it need not be a good one, but soon made.
_GRAPH: "CreateHNSWConfiguration" = {"space": "cosine", "ef_construction": 16, "max_neighbors": 8}


class ChromaStore:
    """What is kept in `folder`; a folder that is broken or foreign is emptied. Blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._collection: chromadb.Collection | None = None

    def load(self) -> "tuple[Arrays, list[str], Floats]":
        """Return what was learnt, the contents that have a vector, and the vectors; nothing of what is broken."""
        import numpy as np

        marker = self._folder / _OPENING
        if marker.exists():
            self._empty()
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            marker.touch()
            learnt, (blobs, vectors) = self._learnt(), self._stored()
        except Exception:  # chromadb has no error that all of its own are: a folder that it cannot read is none
            self._empty()
            learnt, blobs, vectors = {}, [], np.zeros((0, 0), dtype=np.float32)
        marker.unlink(missing_ok=True)
        return learnt, blobs, vectors

    def begin(self, learnt: "Arrays") -> None:
        """Forget everything, and keep what was learnt for the vectors that will come."""
        import io

        import numpy as np

        self._empty()
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **{name: np.asarray(array) for name, array in learnt.items()})
        write_atomically(self._folder / _LEARNT, packed.getvalue())

    def keep(self, blobs: Sequence[str], vectors: "Floats") -> int:
        """Store these vectors, in place of others where there would be too many; return how many are stored."""
        collection = self._open()
        spare = collection.count() + len(blobs) - MOST_VECTORS
        if spare > 0:
            gone = collection.get(limit=spare, include=[])["ids"]
            for first in range(0, len(gone), _AT_ONCE):
                collection.delete(ids=gone[first : first + _AT_ONCE])
        for first in range(0, len(blobs), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            collection.upsert(ids=list(blobs[some]), embeddings=vectors[some])
        return collection.count()

    def _learnt(self) -> "Arrays":
        import numpy as np

        try:
            with np.load(self._folder / _LEARNT, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError("what was learnt cannot be read") from error

    def _stored(self) -> "tuple[list[str], Floats]":
        import numpy as np

        collection = self._open()
        blobs: list[str] = []
        parts: list[Floats] = []
        for first in range(0, min(collection.count(), MOST_VECTORS), _AT_ONCE):
            some = collection.get(limit=_AT_ONCE, offset=first, include=["embeddings"])
            blobs += some["ids"]
            parts.append(np.asarray(some["embeddings"], dtype=np.float32))
        vectors = np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
        if vectors.shape[0] != len(blobs) or not np.isfinite(vectors).all():
            raise ValueError("what is stored are no vectors")
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

    def _empty(self) -> None:
        """Remove the folder, never what a link leads to, and make it anew."""
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


def pack_learnt(words: Sequence[str], weights: "Floats", directions: "Floats", taught: int) -> "Arrays":
    """Return what was learnt from `taught` files as arrays to be sent and kept."""
    import numpy as np

    numbers = np.array([taught], dtype=np.int64)
    return {"words": pack_texts(words), "weights": weights, "directions": directions, "taught": numbers}
