"""The vectors as the retriever has them, over a real folder."""

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from agent_workbench.adapters.retrieval.chunking.chunks import Piece
from agent_workbench.adapters.retrieval.index.file_kinds import Kind
from agent_workbench.adapters.retrieval.index.segments import SourceFile
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.adapters.retrieval.vectors import folder_vectors as folders
from agent_workbench.adapters.retrieval.vectors.corpus import Corpus
from agent_workbench.adapters.retrieval.vectors.folder_vectors import FolderVectors
from agent_workbench.adapters.retrieval.vectors.vector_table import FileVectors
from agent_workbench.adapters.retrieval.vectors.vectors import Asked, OnReady, Read
from agent_workbench.core.retrieval import VECTORS_UNWANTED, CodeQuery, SignalKind
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
from tests.adapters.retrieval.index.test_workspace_index import index_of
from tests.adapters.retrieval.vectors.corpora import topics
from tests.fakes.folder_workspace import FolderWorkspace


def fill(root: Path) -> None:
    for path, words in topics().items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(words) + "\n")


async def test_the_retriever_learns_behind_its_index_and_finds_by_it(tmp_path: Path) -> None:
    fill(tmp_path / "repo")
    sources = FolderWorkspace(tmp_path / "repo")
    settings = RetrievalSettings(embeddings=EmbeddingSettings(EmbeddingProvider.BUILTIN))
    retriever = CodeRetriever(settings, tmp_path / "cache", os.environ)
    await retriever.build(sources)
    assert retriever.status(sources).vectors == "ready"
    chunks = await retriever.search(sources, CodeQuery("invoice"), 20)
    assert SignalKind.VECTOR in {signal.kind for chunk in chunks for signal in chunk.signals}
    await retriever.close()


async def test_without_vectors_nothing_is_kept_and_searching_works(tmp_path: Path) -> None:
    fill(tmp_path / "repo")
    sources = FolderWorkspace(tmp_path / "repo")
    retriever = CodeRetriever(RetrievalSettings(), tmp_path / "cache", os.environ)
    await retriever.build(sources)
    assert retriever.status(sources).vectors == VECTORS_UNWANTED
    assert await retriever.search(sources, CodeQuery("invoice"), 5)
    assert not (tmp_path / "cache" / "vectors").exists()
    await retriever.close()


class WaitingVectors:
    """Vectors that are ready when they are told so; in `asked` they stand once for each update."""

    standing = "waiting"

    def __init__(self, asked: "asyncio.Queue[WaitingVectors]") -> None:
        self._asked = asked
        self.ready = asyncio.Event()

    async def update(self, corpus: Corpus, read: Read, on_ready: OnReady) -> None:
        self._asked.put_nowait(self)
        await self.ready.wait()
        on_ready(FileVectors(corpus.paths, np.zeros(1, np.int64), np.ones((1, 1), np.float32)))

    async def similar(self, files: FileVectors, asked: Asked, limit: int) -> dict[str, float]:
        return dict.fromkeys(files.paths, 1.0)

    async def close(self) -> None:
        self.ready.set()


async def test_worktrees_that_begin_at_once_share_one_set_and_a_forgotten_one_is_not_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = [FolderWorkspace(tmp_path / name) for name in ("one", "two", "gone")]
    at_once = threading.Barrier(len(trees), timeout=30)
    asked: asyncio.Queue[WaitingVectors] = asyncio.Queue()

    def make(settings: EmbeddingSettings, folder: Path, environ: Mapping[str, str]) -> WaitingVectors:
        at_once.wait()
        return WaitingVectors(asked)

    monkeypatch.setattr(folders, "make_vectors", make)
    view = index_of([SourceFile("a.py", "0" * 40, Kind.SOURCE, [Piece(1, 2, "a", {"a": 1}, {}, {})])]).view
    vectors = FolderVectors(EmbeddingSettings(), lambda _: tmp_path / "vectors", {})
    for tree in trees:
        vectors.begin(tree, view)
    used = [await asked.get() for _ in trees]
    assert used[1:] == used[:-1]
    vectors.forget(trees[2].root)
    used[0].ready.set()
    for tree in trees:
        await vectors.settled(tree.root)
    found = [await vectors.similar(tree.root, "a", {"a": 1}, 9) for tree in trees]
    assert found == [{"a.py": 1.0}, {"a.py": 1.0}, {}]
    assert [vectors.standing(tree.root) for tree in trees] == ["waiting", "waiting", ""]
    await vectors.close()
