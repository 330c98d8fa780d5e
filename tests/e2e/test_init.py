"""`agent init` on a machine with a model: what it finds, asks, writes, and that the model answers then."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.machine import Machine
from tests.e2e.terminal import in_terminal
from tests.llama_fixtures import CONTEXT_TOKENS

FILES = {"web/package.json": '{"scripts": {"test": "true"}}', "Makefile": "# test: none\n"}


@pytest.fixture
def repo(machine: Machine, tiny_model_path: Path) -> Path:
    """A repository, and a model in the folder where people put models."""
    (machine.home / "models").mkdir()
    shutil.copy(tiny_model_path, machine.home / "models" / "tiny.gguf")
    return machine.new_repo("shop", FILES)


def own_settings(machine: Machine) -> Path:
    return machine.home / ".config/agent-workbench/settings.yml"


@pytest.mark.slow
def test_a_found_model_is_written_for_all_repos_and_answers(machine: Machine, repo: Path) -> None:
    nowhere = {"OLLAMA_HOST": "127.0.0.1:9"}
    told = machine.agent("init", cwd=repo, environ=nowhere)
    assert told.code == 0, told.said
    assert "1. tiny.gguf, " in told.out
    assert "kB, served by the workbench" in told.out
    assert "`agent init --yes`" in told.out
    assert not own_settings(machine).exists(), "nobody was asked"
    before = (repo / ".agent.yml").read_bytes()

    told = machine.agent("init", "--yes", cwd=repo, environ=nowhere)
    assert told.code == 0, told.said
    assert "context 32,768: KV cache" in told.out
    assert f"wrote {own_settings(machine)}" in told.out
    assert (repo / ".agent.yml").read_bytes() == before
    assert "tiny.gguf" in own_settings(machine).read_text()

    answered = machine.agent("model", "status", cwd=repo)
    assert answered.code == 0, answered.said
    assert "32768" in answered.out.replace(",", "")
    again = machine.agent("init", cwd=repo)
    assert (again.code, "all files exist already" in again.out) == (0, True), again.said
    doctor = machine.agent("doctor", cwd=repo)
    assert "✓ model server   threads 1" in doctor.out, doctor.said


def test_a_person_chooses_by_number_and_a_server_is_found_at_its_variable(
    machine: Machine, repo: Path, keyless_server: str
) -> None:
    machine.environ["OLLAMA_HOST"] = keyless_server
    with in_terminal(machine, "init", cwd=repo) as terminal:
        terminal.until("for all your repos")
        assert f"1. tiny (context {CONTEXT_TOKENS:,}), served by llama-server at {keyless_server}" in terminal.shown
        terminal.until("n for none] ")
        terminal.shown = ""
        terminal.type("7\n")
        terminal.until("n for none] ")
        terminal.type("2\n")
        assert terminal.end(30) == 0
    assert own_settings(machine).read_text() == f'model:\n  path: "{machine.home}/models/tiny.gguf"\n'
    listed = machine.agent("model", "list", cwd=repo)
    assert f"llama-server at {keyless_server}: tiny" in listed.out, listed.said


def test_a_server_that_is_named_is_kept(machine: Machine, repo: Path, keyless_server: str) -> None:
    once = machine.agent("doctor", "--model-url", keyless_server, cwd=repo)
    assert f"`agent init --url {keyless_server}` keeps it for all your repos" in once.out, once.said
    gone = machine.agent("init", "--url", "http://127.0.0.1:9", cwd=repo)
    assert (gone.code, "no model server answers at http://127.0.0.1:9" in gone.out) == (5, True), gone.said
    assert not own_settings(machine).exists()
    for _ in range(2):
        kept = machine.agent("init", "--url", f"{keyless_server}/v1", cwd=repo)
        assert kept.code == 0, kept.said
    assert own_settings(machine).read_text() == f'model:\n  url: "{keyless_server}"\n'
    assert "model url" not in machine.agent("doctor", "--model-url", keyless_server, cwd=repo).out


@pytest.mark.parametrize("tracked", [(), (".agent.yml",)])
def test_what_it_writes_can_be_kept_out_of_git(machine: Machine, repo: Path, tracked: tuple[str, ...]) -> None:
    told = machine.agent("init", cwd=repo)
    assert (told.code, "`agent init --private`" in told.out) == (0, True), told.said
    assert machine.git(repo, "status", "--short").split("\n") == ["?? .agent.yml", "?? memory/"]
    for path in tracked:
        machine.git(repo, "add", path)
        machine.git(repo, "commit", "--quiet", "--message", "Shared")
    (repo / ".git/info/exclude").write_text("*.log")
    for _ in range(2):
        assert machine.agent("init", "--private", cwd=repo).code == 0
    kept = [name for name in ("/.agent.yml", "/memory/") if name[1:] not in tracked]
    assert (repo / ".git/info/exclude").read_text().split() == ["*.log", *kept]
    assert machine.git(repo, "status", "--short") == ""
    assert "--private" not in machine.agent("init", cwd=repo).out


def test_an_editor_has_a_person_choose_a_model_without_a_repository(machine: Machine, keyless_server: str) -> None:
    machine.environ["OLLAMA_HOST"] = keyless_server
    without = machine.agent("acp", "--setup", cwd=machine.home)
    assert (without.code, own_settings(machine).exists()) == (1, False), without.said
    with in_terminal(machine, "acp", "--setup", cwd=machine.home) as terminal:
        terminal.until("n for none] ")
        terminal.type("1\n")
        assert terminal.end(30) == 0
    assert keyless_server in own_settings(machine).read_text()
    again = machine.agent("acp", "--setup", cwd=machine.home)
    assert (again.code, "a model is set" in again.out) == (0, True), again.said
