"""Embeddings of one repo's files: made by a model, stored by content in a process of its own, compared with a query."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from msgspec import Struct

from agent_workbench.adapters.retrieval.embedding_client import EmbeddingFailed
from agent_workbench.adapters.retrieval.index.segments import blob_id
from agent_workbench.adapters.retrieval.vector_table import FileVectors, VectorTable, unit_rows
from agent_workbench.adapters.retrieval.vector_worker import LOCK
from agent_workbench.adapters.retrieval.worker_frames import InvalidFrame
from agent_workbench.adapters.retrieval.worker_process import (
    WorkerLost,
    WorkerMessage,
    WorkerProcess,
    ask,
    in_thread,
    pack_texts,
    unpack_texts,
)
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import StorageError
from agent_workbench.system.locks import lock_holder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


Read = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]
OnReady = Callable[[FileVectors], None]

READY = "ready"
LOADING = "loading"
HELD = "held by another session"
_FILES_PER_REQUEST = 8
# Embedding models read a few hundred tokens at once; the beginning of a long file says most.
CHARS_PER_TEXT = 1_200
MAX_TEXTS = 6
_MAX_BYTES_PER_CHAR = 4
# Fewer new vectors are made again at the next start sooner than the store's process is started for them.
_WORTH_STORING = 8
# A search with vectors of fewer files would favour those that were embedded first.
_SHARE_NEEDED = 0.9
_MAX_QUERY_CHARS = 2_000
# A search waits no longer for its query's vector, and none asks again so soon after one that failed.
_QUERY_SECONDS = 2.0
_REST_SECONDS = 30.0

_MODULE = "agent_workbench.adapters.retrieval.vector_worker"
# On a machine under load Python alone takes seconds to load chromadb.
_OPEN_SECONDS = 120.0
_ANSWER_SECONDS = 120.0
_POLL_SECONDS = 0.25
_BATCH = 4_000


class EmbeddingModel(Protocol):
    """Something that makes vectors of texts (`EmbeddingClient`)."""

    @property
    def name(self) -> str:
        """Name of a folder for vectors that no other model made."""

    async def start(self) -> None:
        """Make the model ready; raise `EmbeddingFailed`."""

    async def embed(self, texts: Sequence[str]) -> "Floats":
        """Return a vector of length 1 for each text; raise `EmbeddingFailed`."""


class IndexedContents(Struct, frozen=True):
    """The files of an index: `paths`, and beside them the git blob ids of their contents."""

    paths: Sequence[str]
    blobs: Sequence[str]


class RepoVectors:
    """The vectors of one repo, as many as fit into memory, stored in `folder`.

    A model or store that fails raises nothing here: `status` says what is wrong.
    """

    def __init__(self, model: EmbeddingModel, folder: Path, environ: Mapping[str, str]) -> None:
        self._model = model
        self._store = VectorStoreProcess(folder, model.name, environ)
        self._one_at_a_time = asyncio.Lock()
        self._table = VectorTable()
        self._loaded = False
        self._unsaved: list[str] = []
        self._store_failure = ""
        self._progress = LOADING
        self._querying: asyncio.Task[Floats] | None = None
        self._resting_until = 0.0

    @property
    def status(self) -> str:
        """State in a few words: ready, loading, how many files are embedded, or why there are no vectors."""
        return self._store_failure or self._progress

    @property
    def store_pid(self) -> int:
        """Id of the process that stores the vectors, 0 while there is none."""
        return self._store.pid

    async def load(self) -> None:
        """Load the stored vectors and start the model, so that the first search has both."""
        async with self._one_at_a_time:
            await self._guarded(self._load())

    async def update(self, contents: IndexedContents, read: Read, on_ready: OnReady) -> None:
        """Embed the files that have no vector; this may take minutes, and waits for other sessions.

        `on_ready` gets the vectors when nearly all files have one, and again when all have.
        """
        async with self._one_at_a_time:
            await self._guarded(self._update(contents, read, on_ready))

    async def nearest(self, files: FileVectors, text: str, limit: int) -> dict[str, float]:
        """Return at most `limit` of the files that are similar to a query, best first (see `FileVectors`)."""
        vector = await self._query_vector(files, text)
        return {} if vector is None else await asyncio.to_thread(files.nearest, vector, limit)

    async def cosines(self, files: FileVectors, text: str) -> dict[str, float]:
        """Return the cosine of each file and a query; none if the query has no vector."""
        vector = await self._query_vector(files, text)
        return {} if vector is None else await asyncio.to_thread(files.cosines, vector)

    async def _query_vector(self, files: FileVectors, text: str) -> "Floats | None":
        """Return the vector of a query, None if there is none now that can be compared with those of the files."""
        now = asyncio.get_running_loop().time()
        # A query that was given up still waits for its answer: a second one would only queue behind it.
        if self._store_failure or not files.paths or self._querying is not None or now < self._resting_until:
            return None
        self._resting_until = now + _REST_SECONDS
        querying = self._querying = in_background(
            self._model.embed([text[:_MAX_QUERY_CHARS]]), expected=(EmbeddingFailed,)
        )
        querying.add_done_callback(self._end_query)
        if not (await asyncio.wait({querying}, timeout=_QUERY_SECONDS))[0]:
            self._progress = f"off: the embeddings server took more than {_QUERY_SECONDS:.0f} s for a query"
            return None
        try:
            vectors = querying.result()
        except EmbeddingFailed as error:
            self._progress = f"off: {error}"
            return None
        self._progress = READY if self._progress.startswith("off") else self._progress
        vector: Floats | None = vectors[0] if vectors.shape[1] == files.matrix.shape[1] else None
        return vector

    async def close(self) -> None:
        """End what runs; vectors that are not stored yet are made again another time."""
        if self._querying is not None:
            self._querying.cancel()
            await asyncio.wait({self._querying})
        await self._store.end()

    def _end_query(self, querying: "asyncio.Task[Floats]") -> None:
        self._querying = None
        if not querying.cancelled() and querying.exception() is None:
            self._resting_until = 0.0

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        """Run `work` unless the store failed before; keep the reason of a failure; end the store's process."""
        if self._store_failure:
            work.close()
            return
        try:
            await work
        except EmbeddingFailed as error:
            self._progress = f"off: {error}"
        except (WorkerLost, OSError) as error:
            self._store_failure = f"off: {error}"
        finally:
            await self._store.end()

    async def _load(self) -> None:
        if not self._loaded:
            self._progress = LOADING
            self._table = await self._store.open(self._on_held)
            self._loaded = True
            await self._store.end()
        await self._model.start()
        self._progress = READY

    async def _update(self, contents: IndexedContents, read: Read, on_ready: OnReady) -> None:
        await self._load()
        is_first = not self._table.dimensions
        await self._complete(contents, read, on_ready)
        if is_first:  # how many files fit is known only now
            await self._complete(contents, read, on_ready)
        self._progress = READY

    async def _complete(self, contents: IndexedContents, read: Read, on_ready: OnReady) -> None:
        """Embed the files that have no vector and fit into the table."""
        missing = await asyncio.to_thread(self._table.missing, contents.blobs)
        if len(missing) + len(self._unsaved) >= _WORTH_STORING:
            await self._open_store(contents.blobs)
            missing = await asyncio.to_thread(self._table.missing, contents.blobs)
        count = len(await asyncio.to_thread(self._table.fitting, contents.blobs))
        if count - len(missing) >= _SHARE_NEEDED * count:
            on_ready(await asyncio.to_thread(self._table.of_files, contents.paths, contents.blobs))
        for first in range(0, len(missing), _FILES_PER_REQUEST):
            self._progress = f"{count - len(missing) + first:,} of {count:,} files embedded"
            await self._embed(missing[first : first + _FILES_PER_REQUEST], contents, read)
            await self._save()
        if missing:
            on_ready(await asyncio.to_thread(self._table.of_files, contents.paths, contents.blobs))

    async def _open_store(self, living: Sequence[str]) -> None:
        """Start the store's process, and take over what another session stored meanwhile."""
        stored = await self._store.open(self._on_held)
        if stored.dimensions == self._table.dimensions or not self._table.dimensions:
            blobs, vectors = self._table.of_contents(self._unsaved)
            self._table = stored
            if blobs:
                self._table.add(blobs, vectors, living)

    async def _embed(self, positions: Sequence[int], contents: IndexedContents, read: Read) -> None:
        """Embed some files; one that changed or is gone gets no vector, and is missing at the next update."""
        import numpy as np

        paths = [contents.paths[each] for each in positions]
        data = await read(paths)
        found = [
            (contents.blobs[position], texts_of(data[path]))
            for position, path in zip(positions, paths, strict=True)
            if path in data and blob_id(data[path]) == contents.blobs[position]
        ]
        if not found:
            return
        vectors = await self._model.embed([text for _, texts in found for text in texts])
        if self._table.dimensions not in {0, vectors.shape[1]}:
            # Another model answers under the same name: vectors of the former one are of no use.
            await self._clear()
        starts = np.cumsum([0, *(len(texts) for _, texts in found)])[:-1]
        blobs = [blob for blob, _ in found]
        self._table.add(blobs, unit_rows(np.add.reduceat(vectors, starts, axis=0)), contents.blobs)
        self._unsaved += blobs

    async def _save(self) -> None:
        """Store new vectors, if the store's process runs."""
        if self._store.pid:
            blobs, vectors = await asyncio.to_thread(self._table.of_contents, self._unsaved)
            await self._store.add(blobs, vectors)
            self._unsaved.clear()

    async def _clear(self) -> None:
        if not self._store.pid:
            await self._store.open(self._on_held)
        await self._store.clear()
        self._table = VectorTable()
        self._unsaved.clear()

    def _on_held(self) -> None:
        self._progress = HELD


def texts_of(data: bytes) -> list[str]:
    """Return the texts that represent a file, at least one; its vector is the mean of theirs."""
    text = data[: CHARS_PER_TEXT * MAX_TEXTS * _MAX_BYTES_PER_CHAR].decode("utf-8", "replace")
    texts: list[str] = []
    while text and len(texts) < MAX_TEXTS:
        end = text.rfind("\n", 0, CHARS_PER_TEXT) + 1 if len(text) > CHARS_PER_TEXT else 0
        end = end or CHARS_PER_TEXT
        texts.append(text[:end])
        text = text[end:]
    return [text for text in texts if text.strip()] or ["empty"]


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
