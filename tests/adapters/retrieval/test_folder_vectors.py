"""The vectors of several folders at once."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from agent_workbench.adapters.retrieval import folder_vectors
from agent_workbench.adapters.retrieval.embedding_client import EmbeddingClient
from agent_workbench.adapters.retrieval.folder_vectors import FolderVectors
from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk
from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.segments import SourceFile
from agent_workbench.adapters.retrieval.repo_vectors import HELD, IndexedContents, OnReady, Read
from agent_workbench.adapters.retrieval.vector_table import FileVectors
from agent_workbench.core.repo.retrieval import VECTORS_UNWANTED
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings
from tests.adapters.retrieval.index.test_workspace_index import index_of
from tests.fakes.folder_workspace import FolderWorkspace

SERVER = EmbeddingSettings(EmbeddingProvider.SERVER, "http://127.0.0.1:9")
VIEW = index_of([SourceFile("a.py", "0" * 40, FileKind.SOURCE, [IndexedChunk(1, 2, "a", {"a": 1}, {}, {})])]).view


class WaitingVectors:
    """Vectors that are ready when they are told so; in `asked` they are once for each update."""

    status = "waiting"

    def __init__(self, asked: "asyncio.Queue[WaitingVectors]") -> None:
        self._asked = asked
        self.ready = asyncio.Event()
        self.loads = 0

    async def load(self) -> None:
        self.loads += 1

    async def update(self, contents: IndexedContents, read: Read, on_ready: OnReady) -> None:
        self._asked.put_nowait(self)
        await self.ready.wait()
        on_ready(FileVectors(contents.paths, np.zeros(1, np.int64), np.ones((1, 1), np.float32)))

    async def nearest(self, files: FileVectors, text: str, limit: int) -> dict[str, float]:
        return dict.fromkeys(files.paths, 1.0)

    async def close(self) -> None:
        self.ready.set()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> "asyncio.Queue[WaitingVectors]":
    queue: asyncio.Queue[WaitingVectors] = asyncio.Queue()

    def make(client: EmbeddingClient, folder: Path, environ: Mapping[str, str]) -> WaitingVectors:
        return WaitingVectors(queue)

    monkeypatch.setattr(folder_vectors, "RepoVectors", make)
    return queue


async def test_worktrees_that_begin_at_once_share_one_set_and_a_forgotten_one_is_not_put_back(
    tmp_path: Path, asked: "asyncio.Queue[WaitingVectors]"
) -> None:
    trees = [FolderWorkspace(tmp_path / name) for name in ("one", "two", "gone")]
    at_once = threading.Barrier(len(trees), timeout=30)

    def folder_of(_: str) -> Path:
        at_once.wait()
        return tmp_path / "vectors"

    vectors = FolderVectors(SERVER, folder_of, {})
    for tree in trees:
        vectors.begin_loading(tree.root)
        vectors.begin_update(tree, VIEW)
    used = [await asked.get() for _ in trees]
    assert used[1:] == used[:-1]
    vectors.forget(trees[2].root)
    used[0].ready.set()
    for tree in trees:
        await vectors.settled(tree.root)
    assert [await vectors.nearest(tree.root, "a", 9) for tree in trees] == [{"a.py": 1.0}, {"a.py": 1.0}, {}]
    assert [vectors.status(tree.root) for tree in trees] == ["waiting", "waiting", ""]
    await vectors.close()


async def test_first_searches_wait_together_no_longer_than_they_may(
    tmp_path: Path, asked: "asyncio.Queue[WaitingVectors]"
) -> None:
    tree = FolderWorkspace(tmp_path)
    vectors = FolderVectors(SERVER, lambda _: tmp_path / "vectors", {})
    vectors.begin_update(tree, VIEW)
    made = await asked.get()
    await vectors.first_ready(tree.root, 0.01)
    assert await vectors.nearest(tree.root, "a", 9) == {}
    # The time is over, and a later search does not wait again.
    async with asyncio.timeout(10):
        await vectors.first_ready(tree.root, 0.01)
    made.ready.set()
    await vectors.settled(tree.root)
    assert await vectors.nearest(tree.root, "a", 9) == {"a.py": 1.0}
    await vectors.close()


async def test_a_search_waits_until_the_vectors_are_ready_and_not_until_its_bound(
    tmp_path: Path, asked: "asyncio.Queue[WaitingVectors]"
) -> None:
    tree = FolderWorkspace(tmp_path)
    vectors = FolderVectors(SERVER, lambda _: tmp_path / "vectors", {})
    await vectors.first_ready(tree.root, 1000)  # nothing was begun: there is nothing to wait for
    vectors.begin_update(tree, VIEW)
    made = await asked.get()
    waiting = asyncio.create_task(vectors.first_ready(tree.root, 1000))
    await asyncio.sleep(0)
    made.ready.set()
    async with asyncio.timeout(10):
        await waiting
    assert await vectors.nearest(tree.root, "a", 9) == {"a.py": 1.0}
    await vectors.close()


async def test_a_store_that_another_session_has_is_waited_for_less(
    tmp_path: Path, asked: "asyncio.Queue[WaitingVectors]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_vectors, "_HELD_SECONDS", 0.0)
    tree = FolderWorkspace(tmp_path)
    vectors = FolderVectors(SERVER, lambda _: tmp_path / "vectors", {})
    vectors.begin_update(tree, VIEW)
    (await asked.get()).status = HELD
    async with asyncio.timeout(10):
        await vectors.first_ready(tree.root, 1000)
    await vectors.close()


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        (EmbeddingSettings(), VECTORS_UNWANTED),
        (EmbeddingSettings(EmbeddingProvider.SERVER), "off: neither"),
        (EmbeddingSettings(EmbeddingProvider.SERVER, path="model.gguf"), "off: neither"),
    ],
)
async def test_without_an_endpoint_nothing_is_done(tmp_path: Path, settings: EmbeddingSettings, status: str) -> None:
    tree = FolderWorkspace(tmp_path)
    vectors = FolderVectors(settings, lambda _: tmp_path / "vectors", {})
    vectors.begin_loading(tree.root)
    vectors.begin_update(tree, VIEW)
    await vectors.settled(tree.root)
    assert vectors.status(tree.root).startswith(status)
    assert await vectors.nearest(tree.root, "a", 9) == {}
    assert not (tmp_path / "vectors").exists()
    await vectors.close()
