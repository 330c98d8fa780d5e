"""A machine for each test; a model for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.machine import Machine
from tests.llama_fixtures import LlamaServer, keyless_server, llama_server, tiny_model_path

__all__ = ["keyless_server", "llama_server", "tiny_model_path"]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine on which no model is configured."""
    machine = Machine(tmp_path / "machine", forks=True)
    yield machine
    machine.end()


@pytest.fixture
def served(tmp_path: Path, llama_server: LlamaServer) -> Iterator[Machine]:
    """A machine on which a real llama.cpp server runs and is configured, with its key."""
    machine = Machine(tmp_path / "machine", server_environ(llama_server), forks=True)
    yield machine
    machine.end()


def server_environ(server: LlamaServer) -> dict[str, str]:
    """Return the variables that make the workbench use a server that runs."""
    return {
        "AGENT_MODEL__URL": server.url,
        "AGENT_MODEL__API_KEY_ENV": "TINY_API_KEY",
        "TINY_API_KEY": server.api_key,
    }
