from tests.llama_fixtures import tiny_model_path

__all__ = ["tiny_model_path"]
