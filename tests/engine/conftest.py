"""A home of one's own for every test, and the real server."""

from tests.adapters.git.conftest import home
from tests.llama_fixtures import llama_server, small_llama_server, tiny_model_path

__all__ = ["home", "llama_server", "small_llama_server", "tiny_model_path"]
