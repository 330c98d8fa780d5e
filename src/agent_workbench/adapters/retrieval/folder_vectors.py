"""Vectors of the searched folders, one set for each repo, and of short texts such as notes and playbooks."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.embedding_client import EmbeddingClient, EmbeddingServer
from agent_workbench.adapters.retrieval.repo_vectors import HELD, EmbeddingModel, IndexedContents, Read, RepoVectors
from agent_workbench.adapters.retrieval.vector_table import FileVectors
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import error_text
from agent_workbench.core.extras import Extra, has_extra, missing_extra
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import VECTORS_UNWANTED
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings

if TYPE_CHECKING:
    from agent_workbench.adapters.retrieval.index.view import IndexView


NOTES, PLAYBOOKS = "notes", "playbooks"
"""Names of collections of texts, and of their vectors in the folder of a repo's vectors."""
# A search waits no longer for notes that were never embedded; the next one may find them.
_FIRST_SECONDS = 8.0

_POLL_SECONDS = 0.25
_HELD_SECONDS = 2.5
MakeServer = Callable[[str], EmbeddingServer]
"""Returns the server for a GGUF file, not started yet."""


class NoteVectors:
    """Similarity of one repo's texts of a collection to words; `folder` holds the repo's vectors."""

    def __init__(
        self, model: EmbeddingModel, folder: Path, environ: Mapping[str, str], collection: str = NOTES
    ) -> None:
        self._vectors = RepoVectors(model, folder / collection, environ)
        self._files: FileVectors | None = None
        self._embedded: Mapping[str, str] = {}
        self._running: asyncio.Task[None] | None = None

    @property
    def status(self) -> str:
        """State in a few words."""
        return self._vectors.status

    def update(self, blobs: Mapping[str, str], read: Read) -> None:
        """Embed in the background the notes (blob id by name) that have no vector; `read` returns their bytes."""
        if blobs != self._embedded and (self._running is None or self._running.done()):
            self._embedded = dict(blobs)
            contents = IndexedContents(list(blobs), list(blobs.values()))
            self._running = in_background(self._vectors.update(contents, read, self._hold))

    async def nearest(self, words: str, limit: int) -> Mapping[str, float]:
        """Return the names of at most `limit` notes that are similar to the words, with their similarity."""
        files = await self._first()
        return await self._vectors.nearest(files, words, limit) if files is not None else {}

    async def cosines(self, words: str) -> Mapping[str, float]:
        """Return the cosine of the words and each text that has a vector."""
        files = await self._first()
        return await self._vectors.cosines(files, words) if files is not None else {}

    async def close(self) -> None:
        """End what runs in the background."""
        if self._running is not None:
            self._running.cancel()
        await self._vectors.close()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    async def _first(self) -> FileVectors | None:
        """Return the vectors; those that were never made are waited for, for a while."""
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=_FIRST_SECONDS if self._files is None else 0)
        return self._files

    def _hold(self, files: FileVectors) -> None:
        self._files = files


class FolderVectors:
    """Vectors by the root of a searched folder; `folder_of` tells where those of its repo are stored.

    All methods do nothing where the settings want no vectors; `status` says so.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        folder_of: Callable[[str], Path],
        environ: Mapping[str, str],
        make_server: MakeServer | None = None,
    ) -> None:
        self._folder_of = folder_of
        self._environ = environ
        self._client, self._missing = _client(settings, environ, make_server)
        self._of_repo: dict[Path, RepoVectors] = {}
        self._of_root: dict[str, RepoVectors] = {}
        self._files: dict[str, FileVectors] = {}
        self._wanted: dict[str, tuple[Sources, IndexView]] = {}
        self._begun: set[str] = set()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._first_calls: dict[str, float] = {}

    def status(self, root: str) -> str:
        """Return the state of a folder's vectors in a few words, empty before anything was begun."""
        if self._client is None:
            return self._missing
        vectors = self._of_root.get(root)
        return vectors.status if vectors else ""

    def of_notes(self, root: str, collection: str = NOTES) -> NoteVectors | None:
        """Return the vectors of the notes in the repo of a folder, None where the settings want none. Blocks."""
        if self._client is None:
            return None
        return NoteVectors(self._client, self._folder_of(root), self._environ, collection)

    def begin_loading(self, root: str) -> None:
        """Load in the background what is stored for the folder, and start the model."""
        self._begun.add(root)
        if self._client is not None and root not in self._running and root not in self._of_root:
            self._running[root] = in_background(self._catch_up(self._client, root))

    def begin_update(self, sources: Sources, view: "IndexView") -> None:
        """Embed in the background the files that are new in `view`; of several views only the newest counts."""
        root = sources.root
        if self._client is None:
            return
        self._begun.add(root)
        self._wanted[root] = (sources, view)
        if root not in self._running:
            self._running[root] = in_background(self._catch_up(self._client, root))

    async def settled(self, root: str) -> None:
        """Wait until nothing is done for the folder any more."""
        if root in self._running:
            await asyncio.wait({self._running[root]})

    async def first_ready(self, root: str, seconds: float) -> None:
        """Wait until nothing is done for the folder any more, at most until `seconds` after the first call.

        While another session has the store, the wait is shorter: that session may embed for minutes.
        """
        now = asyncio.get_running_loop().time
        begun = self._first_calls.setdefault(root, now())
        while root in self._running:
            left = begun + (_HELD_SECONDS if self.status(root) == HELD else seconds) - now()
            if left <= 0:
                return
            await asyncio.wait({self._running[root]}, timeout=min(left, _POLL_SECONDS))

    async def nearest(self, root: str, text: str, limit: int) -> dict[str, float]:
        """Return at most `limit` files of the folder that are similar to a query, best first (see `FileVectors`)."""
        files, vectors = self._files.get(root), self._of_root.get(root)
        return await vectors.nearest(files, text, limit) if files and vectors else {}

    def forget(self, root: str) -> None:
        """Drop what is held for a folder that is not searched any more."""
        self._begun.discard(root)
        self._wanted.pop(root, None)
        self._of_root.pop(root, None)
        self._files.pop(root, None)
        self._first_calls.pop(root, None)

    async def close(self) -> None:
        """End what runs in the background, the model's server included."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*(vectors.close() for vectors in self._of_repo.values()))
        await asyncio.gather(*running, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    async def _catch_up(self, client: EmbeddingClient, root: str) -> None:
        """Load the folder's vectors, then update them to the newest view that is wanted."""
        try:
            vectors = await self._repo_vectors(client, root)
            await vectors.load()
            while wanted := self._wanted.pop(root, None):
                sources, view = wanted
                if not view.files:
                    self._files.pop(root, None)
                    continue
                contents = await asyncio.to_thread(_contents, view)
                await vectors.update(contents, sources.read_files, partial(self._hold, root))
        finally:
            del self._running[root]

    async def _repo_vectors(self, client: EmbeddingClient, root: str) -> RepoVectors:
        """Return the one set that all folders of a repo share, though several of them may ask at once."""
        known = self._of_root.get(root)
        if known is None:
            folder, made = await asyncio.to_thread(self._make, client, root)
            known = self._of_repo.setdefault(folder, made)
            if root in self._begun:
                self._of_root[root] = known
        return known

    def _make(self, client: EmbeddingClient, root: str) -> tuple[Path, RepoVectors]:
        folder = self._folder_of(root)
        return folder, RepoVectors(client, folder, self._environ)

    def _hold(self, root: str, files: FileVectors) -> None:
        if root in self._begun:  # it may have been forgotten meanwhile
            self._files[root] = files


def _client(
    settings: EmbeddingSettings, environ: Mapping[str, str], make_server: MakeServer | None
) -> tuple[EmbeddingClient | None, str]:
    """Return the client that the settings want, or the reason why there is none."""
    if settings.provider is EmbeddingProvider.NONE:
        return None, VECTORS_UNWANTED
    if not has_extra(Extra.VECTORS):
        return None, f"off: {error_text(missing_extra(Extra.VECTORS))}"
    if settings.path and make_server is not None:
        return EmbeddingClient(settings, environ, make_server(settings.path)), ""
    if settings.url:
        return EmbeddingClient(settings, environ), ""
    return None, "off: neither retrieval.embeddings.url nor retrieval.embeddings.path is set"


def _contents(view: "IndexView") -> IndexedContents:
    return IndexedContents(list(view.paths()), list(view.blobs()))
