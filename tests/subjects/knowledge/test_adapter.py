"""The folder of the notes: what stands in it does not break a search, and what is written stands there whole."""

import os
from pathlib import Path

import pytest

from agent_workbench.core.errors import StorageError
from agent_workbench.core.knowledge import KnowledgeNote
from agent_workbench.core.repo.retrieval import SignalKind
from agent_workbench.subjects.knowledge.adapter import MAX_BYTES, KnowledgeFolder


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "memory" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "retry-logic.md").write_text("---\ntitle: Retry Logic\n---\nAlways retry transient failures.\n")
    (folder / "deploy.md").write_text("Migrations run before a deploy.\n")
    return folder


async def found(knowledge: KnowledgeFolder, words: str) -> list[str]:
    return [hit.note.name for hit in await knowledge.search(words, 5)]


async def test_only_what_fits_is_found(tmp_path: Path, notes: Path) -> None:
    knowledge = KnowledgeFolder(tmp_path)
    (hit,) = await knowledge.search("retry transient", 5)
    assert hit.note.name == "retry-logic"
    assert hit.score > 0
    assert [(each.kind, set(each.words)) for each in hit.signals] == [(SignalKind.WORDS, {"retry", "transient"})]
    assert await found(knowledge, "before?") == ["deploy"]
    await knowledge.close()


async def test_changes_by_others_are_seen_at_once(tmp_path: Path, notes: Path) -> None:
    knowledge = KnowledgeFolder(tmp_path)
    assert await found(knowledge, "jitter") == []
    (notes / "new.md").write_text("use jitter\n")
    assert await found(knowledge, "jitter") == ["new"]
    with (notes / "deploy.md").open("a") as file:
        file.write("with jitter\n")
    assert await found(knowledge, "jitter") == ["new", "deploy"]
    (notes / "new.md").unlink()
    assert await found(knowledge, "jitter") == ["deploy"]
    await knowledge.close()


async def test_what_cannot_be_read_is_told_and_stops_nothing(tmp_path: Path, notes: Path) -> None:
    (notes / "binary.md").write_bytes(b"retry \0")
    (notes / "latin.md").write_bytes(b"retry \xff")
    (notes / "outside.md").symlink_to("/etc/passwd")
    os.mkfifo(notes / "pipe.md")
    with (notes / "huge.md").open("wb") as file:
        file.truncate(200_000_000)
    (notes / "folder.md").mkdir()
    (notes / "README.md").write_text("retry")
    (notes / "notes.txt").write_text("retry")
    knowledge = KnowledgeFolder(tmp_path)
    assert await found(knowledge, "retry") == ["retry-logic"]
    assert await knowledge.problem() == (
        "in memory/knowledge binary.md is not text; huge.md has 200,000,000 bytes; the limit is 1,000,000; "
        "latin.md is not UTF-8 and 2 more; not searched"
    )
    problems = {note.name: note.problem for note in await knowledge.notes() if note.problem}
    assert problems.keys() == {"binary", "latin", "outside", "pipe", "huge"}
    await knowledge.close()


async def test_a_folder_that_is_none(tmp_path: Path) -> None:
    knowledge = KnowledgeFolder(tmp_path)
    assert "there is no folder" in await knowledge.problem()
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "knowledge").write_text("a file")
    with pytest.raises(StorageError):
        await knowledge.search("retry", 5)
    assert "cannot be read" in await knowledge.problem()
    (tmp_path / "memory" / "knowledge").unlink()
    (tmp_path / "memory" / "knowledge").symlink_to("/etc")
    with pytest.raises(StorageError, match="outside"):
        await knowledge.search("retry", 5)
    with pytest.raises(StorageError, match="outside"):
        await knowledge.write(KnowledgeNote("x", "text"), None)
    await knowledge.close()


async def test_names_that_differ_by_case_are_one(tmp_path: Path, notes: Path) -> None:
    (notes / "Money.md").write_text("upper")
    knowledge = KnowledgeFolder(tmp_path)
    with pytest.raises(StorageError, match=r"Money\.md already"):
        await knowledge.write(KnowledgeNote("money", "lower"), None)


async def test_a_link_is_not_written_through(tmp_path: Path, notes: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (notes / "linked.md").symlink_to(target)
    with pytest.raises(StorageError, match="is a link"):
        await KnowledgeFolder(tmp_path).write(KnowledgeNote("linked", "theirs"), None)
    assert target.read_text() == "mine"


async def test_of_two_writers_one_wins(tmp_path: Path, notes: Path) -> None:
    one, other = KnowledgeFolder(tmp_path), KnowledgeFolder(tmp_path)
    await one.write(KnowledgeNote("shared", "one"), None)
    with pytest.raises(StorageError, match="already exists"):
        await other.write(KnowledgeNote("shared", "other"), None)
    with pytest.raises(StorageError, match="changed since"):
        await other.write(KnowledgeNote("shared", "other"), "before")
    assert (notes / "shared.md").read_text() == "one"


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * (MAX_BYTES + 1)])
async def test_what_is_no_note_is_not_written(tmp_path: Path, notes: Path, text: str) -> None:
    with pytest.raises(StorageError):
        await KnowledgeFolder(tmp_path).write(KnowledgeNote("odd", text), None)
    assert not (notes / "odd.md").exists()
