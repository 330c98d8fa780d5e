"""With the real keeper: chromadb in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from agent_workbench.adapters.retrieval.vectors.corpus import Corpus
from agent_workbench.adapters.retrieval.vectors.learnt import LearntVectors
from agent_workbench.adapters.retrieval.vectors.store_worker import LOCK
from agent_workbench.adapters.retrieval.vectors.vector_table import FileVectors
from agent_workbench.adapters.retrieval.vectors.vectors import HELD, READY, Asked
from agent_workbench.system.locks import FileLock, lock_holder
from tests.adapters.retrieval.vectors.corpora import corpus, topics


async def no_files(paths: object) -> dict[str, bytes]:
    raise AssertionError("words are enough")


async def update(vectors: LearntVectors, files: Corpus) -> FileVectors | None:
    got: list[FileVectors] = []
    await vectors.update(files, no_files, got.append)
    return got[-1] if got else None


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


def children() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "vectors.keeper" in " ".join(each.cmdline())]


async def test_what_was_learnt_and_kept_is_there_the_next_time(tmp_path: Path) -> None:
    first = LearntVectors(tmp_path / "repo", os.environ)
    files = await update(first, corpus(topics()))
    assert files is not None
    assert first.standing == READY
    assert first.keeper_pid == 0
    found = await first.similar(files, Asked("", {"invoice": 1}), 5)
    assert len(found) == 5
    assert all(path.startswith("money/") for path in found)
    # One file changed; it is folded in.
    changed = topics()
    changed["flight/1.py"] = changed["money/0.py"][:-1]
    second = LearntVectors(tmp_path / "repo", os.environ)
    files = await update(second, corpus(changed))
    assert files is not None
    assert "flight/1.py" in await second.similar(files, Asked("", {"bill": 1, "customer": 1}), 20)
    assert second.standing == READY
    assert children() == []
    assert lock_holder(tmp_path / "repo" / LOCK) == ""
    # The session itself never loads chromadb.
    assert "chromadb" not in sys.modules


@pytest.mark.parametrize("broken", ["sqlite", "learnt", "link", "opening"])
async def test_a_broken_folder_is_made_anew_and_nothing_else_is_touched(tmp_path: Path, broken: str) -> None:
    folder = tmp_path / "repo" / "builtin-1"
    folder.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("keep me")
    match broken:
        case "sqlite":
            (folder / "chroma").mkdir()
            (folder / "chroma" / "chroma.sqlite3").write_bytes(b"no database at all" * 100)
        case "learnt":
            (folder / "learnt.npz").write_bytes(b"PK no archive")
        case "link":
            folder.rmdir()
            folder.symlink_to(elsewhere)
            (elsewhere / "opening").touch()
        case _:
            (folder / "opening").touch()
    vectors = LearntVectors(tmp_path / "repo", os.environ)
    assert await update(vectors, corpus(topics())) is not None
    assert vectors.standing == READY
    assert (elsewhere / "precious").read_text() == "keep me"
    assert not folder.is_symlink()
    assert (folder / "chroma" / "chroma.sqlite3").read_bytes().startswith(b"SQLite format 3")


async def test_a_folder_that_cannot_be_looked_at_turns_vectors_off(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the cache's folder is to be")
    vectors = LearntVectors(tmp_path / "cache" / "repo", os.environ)
    assert await update(vectors, corpus(topics())) is None
    assert vectors.standing.startswith("off: ")
    assert str(tmp_path / "cache") in vectors.standing


async def test_a_session_waits_for_another_one_and_then_takes_over(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    vectors = LearntVectors(tmp_path / "repo", os.environ)
    lock = FileLock(tmp_path / "repo" / LOCK, "another session")
    await asyncio.to_thread(lock.acquire)
    updating = asyncio.create_task(update(vectors, corpus(topics())))
    await until(lambda: vectors.standing == HELD)
    assert children() == []
    await asyncio.to_thread(lock.release)
    assert await updating is not None
    assert vectors.standing == READY


async def test_two_sessions_at_once_both_get_vectors(tmp_path: Path) -> None:
    sessions = [LearntVectors(tmp_path / "repo", os.environ) for _ in range(2)]
    found = await asyncio.gather(*(update(each, corpus(topics())) for each in sessions))
    assert [each.standing for each in sessions] == [READY, READY]
    assert None not in found


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
async def test_a_keeper_that_breaks_turns_vectors_off_and_nothing_else(
    tmp_path: Path, sent: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.vectors.store_process._OPEN_SECONDS", 2.0)
    vectors = LearntVectors(tmp_path / "repo", os.environ)
    updating = asyncio.create_task(update(vectors, corpus(topics())))
    await until(lambda: bool(vectors.keeper_pid))
    os.kill(vectors.keeper_pid, sent)
    assert await updating is None
    expected = "no answer within 2 s" if sent is signal.SIGSTOP else sent.name
    assert vectors.standing.startswith("off: ")
    assert expected in vectors.standing
    assert children() == []
    # It is not tried again and again.
    assert await update(vectors, corpus(topics())) is None
    assert vectors.keeper_pid == 0


async def test_closing_ends_the_keeper_in_the_middle_of_its_work(tmp_path: Path) -> None:
    vectors = LearntVectors(tmp_path / "repo", os.environ)
    updating = asyncio.create_task(update(vectors, corpus(topics())))
    await until(lambda: bool(vectors.keeper_pid))
    updating.cancel()
    await vectors.close()
    with pytest.raises(asyncio.CancelledError):
        await updating
    assert children() == []


SESSION = """
import os, sys
from agent_workbench.adapters.retrieval.worker_processes.process import WorkerProcess
module = "agent_workbench.adapters.retrieval.vectors.store_worker"
child = WorkerProcess(["-m", module, sys.argv[1], "builtin-1"], os.environ)
print(child.pid, flush=True)
sys.stdin.read()
"""


async def test_the_keeper_does_not_outlive_a_session_that_is_killed(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SESSION, str(tmp_path / "repo")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdout is not None
        keeper = psutil.Process(int(session.stdout.readline()))
        session.kill()
    await until(lambda: not keeper.is_running() or keeper.status() == psutil.STATUS_ZOMBIE)
