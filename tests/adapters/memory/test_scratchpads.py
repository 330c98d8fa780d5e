import asyncio
from pathlib import Path

import pytest

from agent_workbench.adapters.memory import ScratchpadFolder
from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.ports.repo_files import Memory

T1 = TaskId("T-1")


def scratchpads(root: Path) -> Memory:
    return ScratchpadFolder(root)


async def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    memory = scratchpads(tmp_path)
    assert await memory.read_scratchpad(T1) == ""
    assert await memory.write_scratchpad(T1, "", "") == ""
    assert not (tmp_path / "memory/scratch/T-1.md").exists()


async def test_what_is_written_is_read(tmp_path: Path) -> None:
    memory = scratchpads(tmp_path)
    assert await memory.write_scratchpad(T1, "", "a\r\nb é\n") == "a\r\nb é\n"
    assert await memory.read_scratchpad(T1) == "a\r\nb é\n"
    assert (tmp_path / "memory/scratch/T-1.md").read_bytes() == "a\r\nb é\n".encode()
    assert await memory.read_scratchpad(TaskId("T-2")) == ""
    assert await memory.write_scratchpad(T1, "a\r\nb é\n", "") == ""
    assert await memory.read_scratchpad(T1) == ""


async def test_what_the_user_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    memory = scratchpads(tmp_path)
    await memory.write_scratchpad(T1, "", "one\ntwo\n")
    (tmp_path / "memory/scratch/T-1.md").write_text("one\ntwo\nthe user's\n")
    now = await memory.write_scratchpad(T1, "one\ntwo\n", "zero\none\ntwo\n")
    assert now == "zero\none\ntwo\nthe user's\n"
    assert await memory.read_scratchpad(T1) == now


async def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    folders = [scratchpads(tmp_path), scratchpads(tmp_path)]
    await asyncio.gather(*(folders[n % 2].write_scratchpad(T1, "", f"note {n}\n") for n in range(12)))
    assert sorted((await folders[0].read_scratchpad(T1)).split("\n")[:-1]) == sorted(f"note {n}" for n in range(12))


async def test_no_name_leads_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a task id"):
        await scratchpads(tmp_path).write_scratchpad(TaskId("../../x"), "", "x")
    (tmp_path / "repo/memory").mkdir(parents=True)
    (tmp_path / "repo/memory/scratch").symlink_to(tmp_path)
    with pytest.raises(StorageError, match=", outside /"):
        await scratchpads(tmp_path / "repo").write_scratchpad(T1, "", "x")
    assert not (tmp_path / "T-1.md").exists()


async def test_what_cannot_be_kept_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    memory = scratchpads(tmp_path)
    await memory.write_scratchpad(T1, "", "kept\n")
    with pytest.raises(StorageError, match="would have 1000005 bytes; the limit is 1000000"):
        await memory.write_scratchpad(T1, "", "x" * 1_000_000)
    with pytest.raises(StorageError, match=r"cannot contain the character '\\ud800'"):
        await memory.write_scratchpad(T1, "kept\n", "\ud800")
    assert await memory.read_scratchpad(T1) == "kept\n"
    (tmp_path / "memory/scratch/T-1.md").write_bytes(b"a\xff")
    with pytest.raises(StorageError, match="is not UTF-8: byte 0xff at 1"):
        await memory.write_scratchpad(T1, "", "x")
    assert (tmp_path / "memory/scratch/T-1.md").read_bytes() == b"a\xff"


async def test_a_fork_has_notes_of_its_own(tmp_path: Path) -> None:
    memory = scratchpads(tmp_path)
    await memory.write_scratchpad(T1, "", "everybody's\n")
    await memory.write_scratchpad(T1, "", "the fork's\n", "abc234")
    assert (await memory.read_scratchpad(T1), await memory.read_scratchpad(T1, "abc234")) == (
        "everybody's\n",
        "the fork's\n",
    )
