"""A real llama.cpp server on the tiny model, started once for all tests of a worker.

Use in a conftest.py: `from tests.llama_fixtures import llama_server, tiny_model_path` and list both in `__all__`.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.core.settings.models import ServingSettings
from scripts.tiny_model import write_tiny_gguf

CONTEXT_TOKENS = 8192
SMALL_CONTEXT_TOKENS = 2560
_WAIT_SECONDS = 300.0
_KEYLESS = """
import signal, sys
from xllamacpp import CommonParams, Server
parameters = CommonParams()
parameters.model.path, parameters.model_alias, parameters.n_ctx = sys.argv[1], {"tiny"}, int(sys.argv[2])
parameters.hostnames, parameters.port, parameters.n_parallel = ["127.0.0.1"], 0, 1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
server = Server(parameters)
print("listening", server.listening_address, flush=True)
signal.pause()
"""


class LlamaServer(Struct, frozen=True):
    """A running server: one slot, a random model."""

    url: str
    api_key: str
    model_path: Path
    pid: int

    def model(self) -> LlamaCppModel:
        """Return a new client; the caller closes it."""
        return LlamaCppModel(self.url, api_key=self.api_key)


class ServerThread:
    """Keeps a server, and the loop that reads its log, out of the loops of the tests."""

    def __init__(
        self, model: Path, log: Path, context_tokens: int = CONTEXT_TOKENS, *, embeddings: bool = False
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="llama-server", daemon=True)
        self._server = EmbeddedServer(
            model, log=log, environ=os.environ, serving=ServingSettings(context_tokens), embeddings=embeddings
        )
        self._model = model

    def start(self) -> LlamaServer:
        self._thread.start()
        url, key = asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(_WAIT_SECONDS)
        return LlamaServer(url, key, self._model, self._server.pid)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(_WAIT_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WAIT_SECONDS)
        self._loop.close()


@pytest.fixture(scope="session")
def tiny_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file of half a megabyte with random weights."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_tiny_gguf(path)
    return path


@pytest.fixture(scope="session")
def llama_server(tiny_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """llama.cpp's server on the tiny model."""
    thread = ServerThread(tiny_model_path, tmp_path_factory.mktemp("server") / "server.log")
    server = thread.start()
    yield server
    thread.stop()


@pytest.fixture(scope="session")
def keyless_server(tiny_model_path: Path) -> Iterator[str]:
    """The address of a llama.cpp server as people start it themselves: anybody may ask it."""
    command = [sys.executable, "-P", "-c", _KEYLESS, str(tiny_model_path), str(CONTEXT_TOKENS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(line.split()[1] for line in process.stdout if line.startswith("listening "))
        finally:
            process.kill()


@pytest.fixture(scope="session")
def small_llama_server(tiny_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """The same with a context of 2048 tokens."""
    log = tmp_path_factory.mktemp("small-server") / "server.log"
    thread = ServerThread(tiny_model_path, log, SMALL_CONTEXT_TOKENS)
    server = thread.start()
    yield server
    thread.stop()
