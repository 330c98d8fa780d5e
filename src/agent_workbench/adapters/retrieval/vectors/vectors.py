"""Which files are like a query: vectors of all files of a repo, made and kept in the background."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agent_workbench.adapters.retrieval.vectors.corpus import Corpus
from agent_workbench.adapters.retrieval.vectors.vector_table import FileVectors
from agent_workbench.core.retrieval import VECTORS_UNWANTED
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings

Read = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]
OnReady = Callable[[FileVectors], None]

READY = "ready"
LEARNING = "learning"
HELD = "held by another session"


class Asked(Struct, frozen=True):
    """A query as written, and its words as the index has them."""

    text: str
    words: Mapping[str, int]


class Vectors(Protocol):
    """The vectors of one repo, whichever way they are made. Nothing here raises: `standing` says what is wrong."""

    @property
    def standing(self) -> str:
        """How they stand, in a few words: ready, learning, held by another session, or why there are none."""

    async def update(self, corpus: Corpus, read: Read, on_ready: OnReady) -> None:
        """Make what vectors are missing for these files; may take minutes, and waits for other sessions.

        `on_ready` gets what there is as soon as it is better than before, once or several times.
        """

    async def similar(self, files: FileVectors, asked: Asked, limit: int) -> dict[str, float]:
        """Return at most `limit` of the files that are like the query, best first, with how much (0 to 1)."""

    async def close(self) -> None:
        """End what runs; vectors that are not kept yet are made again another time."""


class NoVectors:
    """`Vectors` where there are none."""

    def __init__(self, why: str) -> None:
        self.standing = why

    async def update(self, corpus: Corpus, read: Read, on_ready: OnReady) -> None:
        """Do nothing."""

    async def similar(self, files: FileVectors, asked: Asked, limit: int) -> dict[str, float]:
        return {}

    async def close(self) -> None:
        """Do nothing."""


def make_vectors(settings: EmbeddingSettings, folder: Path, environ: Mapping[str, str]) -> Vectors:
    """Return the vectors of a repo as the settings want them, kept in `folder`; nothing is started or touched yet."""
    from agent_workbench.adapters.retrieval.vectors.embedding_client import EmbeddingClient
    from agent_workbench.adapters.retrieval.vectors.learnt import LearntVectors
    from agent_workbench.adapters.retrieval.vectors.onnx_model import OnnxModel
    from agent_workbench.adapters.retrieval.vectors.repo_vectors import RepoVectors

    match settings.provider:
        case EmbeddingProvider.BUILTIN:
            return LearntVectors(folder, environ)
        case EmbeddingProvider.SERVER if settings.url:
            return RepoVectors(EmbeddingClient(settings, environ), folder, environ)
        case EmbeddingProvider.ONNX if settings.path:
            return RepoVectors(OnnxModel(Path(settings.path), environ), folder, environ)
        case EmbeddingProvider.SERVER:
            return NoVectors("off: retrieval.embeddings.url is not set")
        case EmbeddingProvider.ONNX:
            return NoVectors("off: retrieval.embeddings.path is not set")
        case EmbeddingProvider.NONE:
            return NoVectors(VECTORS_UNWANTED)
