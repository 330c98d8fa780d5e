from tests.llama_fixtures import keyless_server, llama_server, tiny_model_path

__all__ = ["keyless_server", "llama_server", "tiny_model_path"]
