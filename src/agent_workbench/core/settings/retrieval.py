"""Settings of the code search."""

from enum import StrEnum

from msgspec import Struct, field


class EmbeddingProvider(StrEnum):
    """Source of the code search's vectors: an embeddings endpoint, or none."""

    SERVER = "server"
    NONE = "none"


class EmbeddingSettings(Struct, frozen=True):
    """Embeddings endpoint: the address of a running one, or an embedding GGUF file to serve."""

    provider: EmbeddingProvider = EmbeddingProvider.NONE
    """Source of the vectors of files."""
    url: str = ""
    """The address of a `llama-server --embeddings`, or of another server with OpenAI's `/v1/embeddings`. Not together
    with `retrieval.embeddings.path`.
    """
    model: str = ""
    """The model's name in requests, for servers that have several."""
    api_key_env: str = ""
    """The environment variable that holds that server's key."""
    path: str = ""
    """An embedding model in a GGUF file in place of an address, which the workbench serves itself; `~` is your home."""


class RetrievalSettings(Struct, frozen=True):
    """Amount of code in the first prompt, what is never indexed, and the source of vectors."""

    top_n: int = 8
    """Number of pieces of code in the prompt at the start of a task."""
    max_chunk_tokens: int = 400
    """Approximate maximum length of a piece."""
    exclude: tuple[str, ...] = ()
    """Globs of files that are never indexed, in addition to files with names of secrets."""
    embeddings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
