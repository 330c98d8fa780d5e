"""Process that learns and keeps the vectors of one repo.

Run as `python -m agent_workbench.adapters.retrieval.vectors.store_worker FOLDER MODEL`.

It alone opens chromadb, which two processes on one folder bring down, and so it begins by taking the folder's lock.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.vectors.chroma_store import ChromaStore, pack_learnt
from agent_workbench.adapters.retrieval.vectors.corpus import Corpus
from agent_workbench.adapters.retrieval.vectors.lsa import train
from agent_workbench.adapters.retrieval.worker_processes.messages import (
    Message,
    pack_texts,
    serve_messages,
    unpack_texts,
)
from agent_workbench.core.errors import LockedError
from agent_workbench.system.locks import FileLock, describe_holder

if TYPE_CHECKING:
    from typing import Any

LOCK = "lock"
# Learning takes longest.
MOST_SECONDS = 600


class Keeper:
    """What can be asked of this process."""

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._kept = ChromaStore(folder / model)
        self._lock = FileLock(folder / LOCK, describe_holder())

    def open(self, message: Message) -> Message:
        """Take the lock and return what is kept, or `held` and by whom."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._lock.acquire()
        except LockedError as error:
            return Message("held", {"by": error.holder})
        learnt, blobs, vectors = self._kept.load()
        return Message("opened", {}, {**learnt, "blobs": pack_texts(blobs), "vectors": vectors})

    def train(self, message: Message) -> Message:
        """Learn from the words of files; return what was learnt, nothing where there is too little to learn from."""
        projection = train(read_corpus(message))
        if projection is None:
            return Message("learnt")
        taught = message.number("files")
        arrays = pack_learnt(projection.words, projection.weights, projection.directions, taught)
        return Message("learnt", {}, arrays)

    def begin(self, message: Message) -> Message:
        """Forget what is kept, and keep what was learnt."""
        self._kept.begin(message.arrays)
        return Message("begun")

    def keep(self, message: Message) -> Message:
        """Keep vectors."""
        vectors: Any = message.array("vectors", "float32", 2)
        return Message("kept", {"vectors": self._kept.keep(unpack_texts(message.array("blobs", "uint8", 1)), vectors)})


def describe_corpus(corpus: Corpus) -> Message:
    """Return the words of files as the question what can be learnt from them."""
    arrays = {"words": pack_texts(corpus.words), "starts": corpus.starts, "rows": corpus.rows, "counts": corpus.counts}
    return Message("train", {"files": len(corpus.paths)}, arrays)


def read_corpus(message: Message) -> Corpus:
    """Return what `describe_corpus` described, without paths and contents."""
    files = [""] * message.number("files")
    starts: Any = message.array("starts", "int64", 1)
    rows: Any = message.array("rows", "int32", 1)
    counts: Any = message.array("counts", "int32", 1)
    return Corpus(files, files, unpack_texts(message.array("words", "uint8", 1)), starts, rows, counts)


if __name__ == "__main__":
    keeper = Keeper(Path(sys.argv[1]), sys.argv[2])
    answers = {"open": keeper.open, "train": keeper.train, "begin": keeper.begin, "keep": keeper.keep}
    serve_messages(answers, MOST_SECONDS)
