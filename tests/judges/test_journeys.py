"""The journeys of a new user, in full: a new question, command or key on the way fails here."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.e2e.journeys import LLAMA_PORT, clone_to_demo, wheel_to_commit
from tests.e2e.tmux import HAS_TMUX
from tests.llama_fixtures import LlamaServer, llama_server, tiny_model_path

__all__ = ["llama_server", "tiny_model_path"]

pytestmark = [pytest.mark.timeout(1800), pytest.mark.skipif(not HAS_TMUX, reason="machine lacks: tmux")]


def is_taken(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def subjects(repo: Path, branch: str) -> list[str]:
    command = ["git", "log", "--format=%s", branch]
    return subprocess.run(command, cwd=repo, check=True, capture_output=True, text=True).stdout.splitlines()


def test_from_a_clone_to_the_merge_of_the_demo(tmp_path: Path) -> None:
    with clone_to_demo(tmp_path) as user:
        assert user.counts == {"commands": 3, "keys": 8, "questions": 6}
        (shop,) = (tmp_path / "tmp").glob("agent-demo-*/shop")
        assert subjects(shop, "main")[0].startswith("[Agent] Complete T-1")


def test_from_the_wheel_to_the_first_commit_in_a_repository(tmp_path: Path, llama_server: LlamaServer) -> None:
    if is_taken(LLAMA_PORT):
        pytest.skip(f"machine lacks: a free port {LLAMA_PORT}")
    with wheel_to_commit(tmp_path, llama_server) as user:
        assert user.counts == {"commands": 4, "keys": 9, "questions": 7}
        repo = tmp_path / "calc"
        assert subjects(repo, "agent/T-1")[0] == "[Agent] Complete T-1: make add() add"
        assert (
            "left + right"
            in subprocess.run(
                ["git", "show", "agent/T-1:calc.py"], cwd=repo, check=True, capture_output=True, text=True
            ).stdout
        )
        assert "left - right" in (repo / "calc.py").read_text(), "the checkout is as it was"
