"""`agent knowledge`: notes are written, found, listed with what tasks made of them, and never replaced unseen."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.subjects.knowledge.calls import OfferedNotes, note_of, park_notes
from agent_workbench.system.command_bounds import COMMAND_MARK
from tests.e2e.machine import Machine

NOTES = {
    "memory/knowledge/retry-logic.md": "---\ntitle: Retry Logic\ntype: concept\n---\n\nRetry transient errors.\n",
    "memory/knowledge/deploy.md": "Migrations run before a deploy.\n",
}


@pytest.fixture
def repo(machine: Machine) -> Path:
    return machine.new_repo("noted", NOTES)


def test_notes_are_searched_and_listed(machine: Machine, repo: Path) -> None:
    found = machine.agent("knowledge", "search", "retry", "transient", "--json", cwd=repo)
    (line,) = found.out.splitlines()
    said = json.loads(line)
    assert (said["path"], said["title"]) == ("memory/knowledge/retry-logic.md", "Retry Logic")
    assert "Retry transient" in said["excerpt"]
    assert said["score"] > 0
    none = machine.agent("knowledge", "search", "zebra", cwd=repo)
    assert (none.code, none.out) == (1, "no note fits these words\n")
    listed = machine.agent("knowledge", "list", "--stats", cwd=repo).out.splitlines()
    assert listed[1].startswith("memory/knowledge/retry-logic.md  Retry Logic · concept  (in 0 tasks")
    assert listed[1].endswith("never helped)")


def test_notes_are_added_and_edited_by_a_person_alone(machine: Machine, repo: Path) -> None:
    added = machine.agent("knowledge", "add", "Use uv!", "--text", "not pip", "--domain", "tools", cwd=repo)
    assert added.out == "written: memory/knowledge/use-uv.md\n"
    text = (repo / "memory/knowledge/use-uv.md").read_text()
    assert text == '---\ntitle: "Use uv!"\ndomain: tools\n---\n\nnot pip\n'
    again = machine.agent("knowledge", "add", "Use uv", "--text", "other", cwd=repo)
    assert again.code == 4
    assert "already exists" in again.err
    assert "another name" in again.err
    edited = machine.agent("knowledge", "edit", "use-uv", "--text", "other\n", "--json", cwd=repo)
    assert json.loads(edited.out) == {"path": "memory/knowledge/use-uv.md"}
    assert (repo / "memory/knowledge/use-uv.md").read_text() == "other\n"
    refused = machine.agent("knowledge", "add", "Mine", "--text", "x", cwd=repo, environ={COMMAND_MARK: "1"})
    assert "a command that the agent runs cannot decide" in refused.err
    assert not (repo / "memory/knowledge/mine.md").exists()
    assert machine.agent("knowledge", "edit", "gone", "--text", "x", cwd=repo).code != 0
    assert machine.agent("knowledge", "add", "../../x", "--text", "inside", cwd=repo).out.endswith("knowledge/x.md\n")


def test_a_client_s_note_waits_and_is_written_when_it_is_approved(
    machine: Machine, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    note = note_of("Use uv.", "../uv", type="concept", domain="tools", origin="an MCP client")
    parked = asyncio.run(_park(Invocation(repo, machine.environ, {}), note.name, note.text))
    assert (parked.paths, parked.written) == (("memory/knowledge/uv.md",), False)
    assert not (repo / "memory/knowledge/uv.md").exists()
    assert "knowledge: memory/knowledge/uv.md" in machine.agent("inbox", cwd=repo).out
    assert parked.reference is not None
    approved = machine.agent("inbox", "approve", str(parked.reference), cwd=repo)
    assert approved.out == "written: memory/knowledge/uv.md\n"
    assert (repo / "memory/knowledge/uv.md").read_text().startswith("---\ntype: concept\ndomain: tools\n---\n")
    assert machine.agent("inbox", cwd=repo).out == "nothing waits\n"
    assert "uv.md" in machine.agent("knowledge", "search", "uv", cwd=repo).out


def test_an_approved_note_that_finds_no_room_waits_again(
    machine: Machine, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in machine.environ.items():
        monkeypatch.setenv(name, value)
    parked = asyncio.run(_park(Invocation(repo, machine.environ, {}), "uv", "Use uv."))
    folder = repo / "memory/knowledge"
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("machine lacks: the right to mount a small disk")
    try:
        (folder / "filler").write_bytes(bytes(4096))
        refused = machine.agent("inbox", "approve", str(parked.reference), cwd=repo)
        assert refused.code == 4
        assert "No space left on device" in refused.err
        assert "knowledge: memory/knowledge/uv.md" in machine.agent("inbox", cwd=repo).out
        (folder / "filler").unlink()
        shown = machine.agent("inbox", "show", str(parked.reference).partition("@")[0], cwd=repo).out
        assert str(parked.reference) in shown
        approved = machine.agent("inbox", "approve", str(parked.reference), cwd=repo)
        assert approved.out == "written: memory/knowledge/uv.md\n"
        assert "Use uv." in (folder / "uv.md").read_text()
    finally:
        subprocess.run(["umount", str(folder)], check=True)


async def _park(invocation: Invocation, name: str, text: str) -> OfferedNotes:
    return await park_notes(invocation, (note_of(text, name),), "brain_write of an MCP client")


@pytest.mark.parametrize(("content", "name"), [("", "x"), (" \n", "x"), ("text", "..")])
def test_what_is_no_note_is_refused(content: str, name: str) -> None:
    with pytest.raises(UsageError):
        note_of(content, name)


def test_without_a_name_a_note_gets_the_time() -> None:
    name = note_of("text").name
    assert name.endswith("-auto")
    assert len(name) == len("2026-11-23-010203-auto")
