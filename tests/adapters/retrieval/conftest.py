"""Real servers for the tests of vectors: one with embeddings, one without."""

from tests.embedding_fixtures import embedding_model_path, embedding_server
from tests.llama_fixtures import llama_server, tiny_model_path

__all__ = ["embedding_model_path", "embedding_server", "llama_server", "tiny_model_path"]
