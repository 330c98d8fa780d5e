import os
from pathlib import Path

import pytest

from agent_workbench.adapters.llama_cpp.server.command import server_command


@pytest.fixture
def big(tmp_path: Path) -> Path:
    path = tmp_path / "big.gguf"
    with path.open("wb") as file:
        file.write(b"GGUF")
        file.truncate(60_000_000)
    return path


def _threads(model: Path) -> int:
    command = server_command(model, context_tokens=512, server="", api_key="k", environ={})
    return int(command.argv[command.argv.index("--threads") + 1])


def test_a_tiny_model_has_one_thread(tiny_model_path: Path) -> None:
    assert _threads(tiny_model_path) == 1


def test_a_big_model_has_at_most_the_cores_there_are(big: Path) -> None:
    assert 1 <= _threads(big) <= (os.cpu_count() or 1)


def test_ones_own_server_chooses_its_threads_for_a_big_model(big: Path) -> None:
    command = server_command(big, context_tokens=512, server="sh", api_key="k", environ={"PATH": "/bin:/usr/bin"})
    assert "-t" not in command.argv
    assert command.environment["LLAMA_API_KEY"] == "k"
    assert "k" not in command.argv
