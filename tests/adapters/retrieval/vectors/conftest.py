"""A server of embeddings for these tests: llama.cpp's own, on the tiny model."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llama_fixtures import tiny_model_path

__all__ = ["tiny_model_path"]

_SERVE = """
import signal, sys
from xllamacpp import CommonParams, Server, llama_pooling_type
parameters = CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.n_parallel = 1
parameters.n_ctx = 512
parameters.n_batch = parameters.n_ubatch = 512
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.ui = False
parameters.api_keys = ["secret"]
if sys.argv[2] == "embeddings":
    parameters.embedding = True
    parameters.pooling_type = llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
server = Server(parameters)
print("listening on " + server.listening_address, flush=True)
signal.pause()
"""


def serve(model: Path, what: str) -> Iterator[str]:
    """Yield the address of a server while it runs."""
    argv = [sys.executable, "-c", _SERVE, str(model), what]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        yield next(line.split()[-1] for line in server.stdout if line.startswith("listening on "))
        server.kill()


@pytest.fixture(scope="session")
def embeddings_url(tiny_model_path: Path) -> Iterator[str]:
    """A server of embeddings that wants the key `secret`."""
    yield from serve(tiny_model_path, "embeddings")


@pytest.fixture(scope="session")
def chat_url(tiny_model_path: Path) -> Iterator[str]:
    """A server without embeddings."""
    yield from serve(tiny_model_path, "chat")
