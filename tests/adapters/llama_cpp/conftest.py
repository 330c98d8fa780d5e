from tests.llama_fixtures import llama_server, tiny_model_path

__all__ = ["llama_server", "tiny_model_path"]
