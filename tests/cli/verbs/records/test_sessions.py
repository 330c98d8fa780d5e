"""`agent sessions fork`, `compare` and `export`, on the session of a demo: what is printed, left alone and refused."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.cli.verbs.records.conftest import FinishedDemo
from tests.e2e.machine import Machine


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.name != "lock"
    }


def compared(machine: Machine, repo: Path, parent: str, child: str) -> None:
    told = machine.agent("sessions", "compare", parent, child, cwd=repo).out.splitlines()
    assert told[0].startswith("They diverge after event ")
    assert [line.split()[1:] for line in told if line.startswith("status")] == [["done", "not", "finished"]]
    found = json.loads(machine.agent("sessions", "compare", child, parent, "--json", cwd=repo).out)
    assert (found["first"]["session"], found["first"]["task"], found["second"]["task"]) == (child, "T-2", "T-2")


def text_of(picture: Path) -> str:
    """Return the words of a picture."""
    return re.sub(r"<[^>]+>", " ", picture.read_text().partition("</title>")[2])


def drawn(machine: Machine, repo: Path, session: str) -> None:
    export = ("sessions", "export", session, "--format")
    assert machine.agent(*export, "svg", "--gates", "--output", "gates", cwd=repo).code == 0
    files = sorted(path.name.partition("-")[2] for path in (repo / "gates").iterdir())
    shown = [text_of(path) for path in (repo / "gates").iterdir() if path.name.endswith("-diff-approve.svg")]
    assert all("reject" in each and "replay" not in each for each in shown)
    assert files == sorted(["diff-approve.svg"] * 3 + ["commit-approve.svg", "commit-waits.svg"])
    assert machine.agent(*export, "json", "--at", "3", cwd=repo).code == 2


@pytest.mark.slow
@pytest.mark.xdist_group("finished demo")
def test_a_session_is_forked_listed_and_exported(finished_demo: FinishedDemo) -> None:
    finished_demo.restore()
    machine, repo = finished_demo.machine, finished_demo.repo
    (parent,) = (repo / "memory" / "sessions").iterdir()
    before = digest(parent)
    forked = machine.agent("sessions", "fork", parent.name, "--json", cwd=repo)
    child = json.loads(forked.out)["session"]
    assert machine.agent("sessions", "verify", child, cwd=repo).code == 0
    told = machine.agent("sessions", "--tree", cwd=repo).out.splitlines()
    assert [line.partition(" 2026")[0].split()[0] for line in told] == [parent.name, "└"]
    assert " parked  from event " in told[1]
    exported = machine.agent("sessions", "export", child, "--output", "pr.md", cwd=repo)
    assert (exported.code, "# T-2: " in (repo / "pr.md").read_text()) == (0, True)
    again = machine.agent("sessions", "export", child, "--output", "pr.md", cwd=repo)
    assert (again.code, "is there already" in again.err) == (4, True)
    for form in ("json", "markdown"):
        later = {"LATER_TOKEN": "quantities", "SSHPASS": "Make the cart"}
        document = machine.agent("sessions", "export", parent.name, "--format", form, cwd=repo, environ=later).out
        assert "quantities" not in document, "a secret of today that was none when it was recorded"
        assert "redacted:LATER_TOKEN" in document or "redacted:LATER\\_TOKEN" in document
    compared(machine, repo, parent.name, child)
    drawn(machine, repo, child)
    assert digest(parent) == before

    journal = parent / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"quantity", b"quantitx", 1))
    assert machine.agent("sessions", "fork", parent.name, cwd=repo).code == 6, "what was tampered with is not forked"
    elsewhere = f"{child[:-1]}{'3' if child.endswith('2') else '2'}"
    (repo / "memory" / "sessions" / child).rename(repo / "memory" / "sessions" / elsewhere)
    assert machine.agent("sessions", "fork", elsewhere, cwd=repo).code == 4, "it was not begun here"
