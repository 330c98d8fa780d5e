"""The vectors of one repo, with the real store: chromadb in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest

from agent_workbench.adapters.retrieval.repo_vectors import HELD, READY, IndexedContents, RepoVectors
from agent_workbench.adapters.retrieval.vector_table import FileVectors
from agent_workbench.adapters.retrieval.vector_worker import LOCK
from agent_workbench.system.locks import FileLock, lock_holder
from tests.adapters.retrieval.vector_fakes import FileReader, TopicModel, contents_of, topic_files

pytestmark = pytest.mark.slow


async def update(vectors: RepoVectors, contents: IndexedContents, read: FileReader) -> FileVectors | None:
    got: list[FileVectors] = []
    await vectors.update(contents, read, got.append)
    return got[-1] if got else None


async def update_topics(vectors: RepoVectors) -> FileVectors | None:
    return await update(vectors, contents_of(topic_files()), FileReader(topic_files()))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


def store_processes() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "retrieval.vector_worker" in " ".join(each.cmdline())]


async def test_vectors_that_were_stored_are_there_the_next_time(tmp_path: Path) -> None:
    model, read = TopicModel(), FileReader(topic_files(), gone=["money/4.py"])
    first = RepoVectors(model, tmp_path / "repo", os.environ)
    files = await update(first, contents_of(topic_files()), read)
    assert files is not None
    assert (first.status, first.store_pid, len(files.paths)) == (READY, 0, 19)
    found = await first.nearest(files, "bill", 5)
    assert len(found) == 5
    assert all(path.startswith("money/") for path in found)
    await first.close()
    # One file changed; nothing else is embedded again.
    changed = topic_files() | {"flight/1.py": b"invoice of a pilot\n"}
    second, read = RepoVectors(model, tmp_path / "repo", os.environ), FileReader(changed)
    files = await update(second, contents_of(changed), read)
    assert sorted(read.read) == ["flight/1.py", "money/4.py"]
    assert files is not None
    assert "flight/1.py" in await second.nearest(files, "bill", 20)
    await second.close()
    assert store_processes() == []
    assert lock_holder(tmp_path / "repo" / LOCK) == ""
    # The session itself never loads chromadb.
    assert "chromadb" not in sys.modules


async def test_loading_brings_what_is_stored_without_a_file_being_read(tmp_path: Path) -> None:
    first = RepoVectors(TopicModel(), tmp_path / "repo", os.environ)
    await update_topics(first)
    model = TopicModel()
    second = RepoVectors(model, tmp_path / "repo", os.environ)
    await second.load()
    read = FileReader({})
    files = await update(second, contents_of(topic_files()), read)
    assert files is not None
    assert (len(files.paths), read.read, model.asked) == (20, [], 0)


async def test_a_file_that_changed_meanwhile_gets_no_vector_of_the_wrong_content(tmp_path: Path) -> None:
    changed = topic_files() | {"money/0.py": b"kite\n"}
    vectors = RepoVectors(TopicModel(), tmp_path / "repo", os.environ)
    files = await update(vectors, contents_of(topic_files()), FileReader(changed))
    assert files is not None
    assert "money/0.py" not in files.paths


async def test_vectors_are_used_when_nearly_all_files_have_one(tmp_path: Path) -> None:
    files, model = topic_files(100), TopicModel()
    got: list[FileVectors] = []
    vectors = RepoVectors(model, tmp_path / "repo", os.environ)
    some = {path: data for number, (path, data) in enumerate(files.items()) if number < 92}
    await vectors.update(contents_of(some), FileReader(some), got.append)
    model.released = asyncio.Event()
    updating = asyncio.create_task(vectors.update(contents_of(files), FileReader(files), got.append))
    await until(lambda: vectors.status == "92 of 100 files embedded")
    assert {len(each.paths) for each in got} == {92}
    model.released.set()
    await updating
    assert (len(got[-1].paths), vectors.status) == (100, READY)


async def test_of_few_that_are_embedded_none_is_used(tmp_path: Path) -> None:
    model = TopicModel()
    vectors = RepoVectors(model, tmp_path / "repo", os.environ)
    model.released = asyncio.Event()
    got: list[FileVectors] = []
    files = topic_files()
    updating = asyncio.create_task(vectors.update(contents_of(files), FileReader(files), got.append))
    await until(lambda: vectors.status == "0 of 20 files embedded")
    assert got == []
    updating.cancel()
    await asyncio.wait({updating})
    await vectors.close()


async def test_a_model_that_fails_turns_vectors_off_until_it_answers(tmp_path: Path) -> None:
    model = TopicModel()
    vectors = RepoVectors(model, tmp_path / "repo", os.environ)
    model.failure = "there is no server"
    assert await update_topics(vectors) is None
    assert vectors.status == "off: there is no server"
    model.failure = ""
    assert await update_topics(vectors) is not None
    assert vectors.status == READY
    await vectors.close()


async def test_another_model_of_the_same_name_begins_anew(tmp_path: Path) -> None:
    await update_topics(RepoVectors(TopicModel(4), tmp_path / "repo", os.environ))
    more = topic_files(22)
    vectors = RepoVectors(TopicModel(6), tmp_path / "repo", os.environ)
    await update(vectors, contents_of(more), FileReader(more))
    files = await update(vectors, contents_of(more), FileReader(more))
    assert files is not None
    assert (files.matrix.shape, len(files.paths)) == ((22, 6), 22)


@pytest.mark.parametrize("broken", ["sqlite", "link", "opening"])
async def test_a_broken_folder_is_made_anew_and_nothing_else_is_touched(tmp_path: Path, broken: str) -> None:
    folder = tmp_path / "repo" / TopicModel.name
    folder.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("keep me")
    match broken:
        case "sqlite":
            (folder / "chroma").mkdir()
            (folder / "chroma" / "chroma.sqlite3").write_bytes(b"no database at all" * 100)
        case "link":
            folder.rmdir()
            folder.symlink_to(elsewhere)
            (elsewhere / "opening").touch()
        case _:
            (folder / "opening").touch()
    vectors = RepoVectors(TopicModel(), tmp_path / "repo", os.environ)
    assert await update_topics(vectors) is not None
    assert vectors.status == READY
    assert (elsewhere / "precious").read_text() == "keep me"
    assert not folder.is_symlink()
    assert (folder / "chroma" / "chroma.sqlite3").read_bytes().startswith(b"SQLite format 3")


async def test_a_folder_that_cannot_be_looked_at_turns_vectors_off(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the cache's folder is to be")
    vectors = RepoVectors(TopicModel(), tmp_path / "cache" / "repo", os.environ)
    assert await update_topics(vectors) is None
    assert vectors.status.startswith("off: ")
    assert str(tmp_path / "cache") in vectors.status


async def test_a_session_waits_for_another_one_and_then_takes_over(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    vectors = RepoVectors(TopicModel(), tmp_path / "repo", os.environ)
    lock = FileLock(tmp_path / "repo" / LOCK, "another session")
    await asyncio.to_thread(lock.acquire)
    updating = asyncio.create_task(update_topics(vectors))
    await until(lambda: vectors.status == HELD)
    assert store_processes() == []
    await asyncio.to_thread(lock.release)
    assert await updating is not None
    assert vectors.status == READY


async def test_two_sessions_at_once_both_get_vectors(tmp_path: Path) -> None:
    sessions = [RepoVectors(TopicModel(), tmp_path / "repo", os.environ) for _ in range(2)]
    found = await asyncio.gather(*(update_topics(each) for each in sessions))
    assert [each.status for each in sessions] == [READY, READY]
    assert None not in found


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
async def test_a_store_that_breaks_turns_vectors_off_and_nothing_else(
    tmp_path: Path, sent: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.repo_vectors._OPEN_SECONDS", 2.0)
    vectors = RepoVectors(TopicModel(), tmp_path / "repo", os.environ)
    updating = asyncio.create_task(update_topics(vectors))
    await until(lambda: bool(vectors.store_pid))
    os.kill(vectors.store_pid, sent)
    assert await updating is None
    expected = "no answer within 2 s" if sent is signal.SIGSTOP else sent.name
    assert vectors.status.startswith("off: ")
    assert expected in vectors.status
    assert store_processes() == []
    # It is not tried again and again.
    assert await update_topics(vectors) is None
    assert vectors.store_pid == 0


async def test_closing_ends_the_store_in_the_middle_of_its_work(tmp_path: Path) -> None:
    vectors = RepoVectors(TopicModel(), tmp_path / "repo", os.environ)
    updating = asyncio.create_task(update_topics(vectors))
    await until(lambda: bool(vectors.store_pid))
    updating.cancel()
    await vectors.close()
    with pytest.raises(asyncio.CancelledError):
        await updating
    assert store_processes() == []


SESSION = """
import os, sys
from agent_workbench.adapters.retrieval.worker_process import WorkerProcess
arguments = ["-m", "agent_workbench.adapters.retrieval.vector_worker", sys.argv[1], "model"]
print(WorkerProcess(arguments, os.environ).pid, flush=True)
sys.stdin.read()
"""


async def test_the_store_does_not_outlive_a_session_that_is_killed(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SESSION, str(tmp_path / "repo")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdout is not None
        store = psutil.Process(int(session.stdout.readline()))
        session.kill()
    await until(lambda: not store.is_running() or store.status() == psutil.STATUS_ZOMBIE)


async def test_a_model_that_hangs_is_asked_once_and_not_by_every_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.repo_vectors._QUERY_SECONDS", 0.001)
    model = TopicModel(2)
    model.released = asyncio.Event()
    vectors = RepoVectors(model, tmp_path, os.environ)
    files = FileVectors(["a.py"], np.zeros(1, np.int64), np.ones((1, 2), np.float32))
    for _ in range(3):
        assert await vectors.nearest(files, "x", 1) == {}
    assert model.asked == 1
    assert vectors.status.startswith("off: the embeddings server took more than")
    model.released.set()
    monkeypatch.undo()
    for _ in range(3):  # the answer comes, and is heard
        await asyncio.sleep(0)
    assert list(await vectors.nearest(files, "x", 1)) == ["a.py"]
    assert vectors.status == READY
    await vectors.close()


async def test_a_query_that_fails_is_not_followed_by_another_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TopicModel(2)
    model.failure = "there is no server"
    vectors = RepoVectors(model, tmp_path, os.environ)
    files = FileVectors(["a.py"], np.zeros(1, np.int64), np.ones((1, 2), np.float32))
    for _ in range(3):
        assert await vectors.nearest(files, "x", 1) == {}
    assert (model.asked, vectors.status) == (1, "off: there is no server")
    monkeypatch.setattr("agent_workbench.adapters.retrieval.repo_vectors._REST_SECONDS", -1.0)
    model.failure, later = "", RepoVectors(model, tmp_path, os.environ)
    assert list(await later.nearest(files, "x", 1)) == ["a.py"]
    await vectors.close()


async def test_what_was_embedded_before_an_early_end_is_there_the_next_time(tmp_path: Path) -> None:
    files, model = topic_files(), TopicModel()
    vectors = RepoVectors(model, tmp_path / "repo", os.environ)

    async def read_twice(paths: Sequence[str]) -> Mapping[str, bytes]:
        if model.asked == 16:
            model.released = asyncio.Event()
        return {path: files[path] for path in paths}

    updating = asyncio.create_task(vectors.update(contents_of(files), read_twice, lambda _: None))
    await until(lambda: vectors.status == "16 of 20 files embedded")
    updating.cancel()
    await asyncio.wait({updating})
    await vectors.close()
    later, read = RepoVectors(TopicModel(), tmp_path / "repo", os.environ), FileReader(files)
    await update(later, contents_of(files), read)
    assert len(read.read) == 4
