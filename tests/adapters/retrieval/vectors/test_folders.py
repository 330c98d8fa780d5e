"""The vectors as the retriever has them, over a real folder."""

import os
from pathlib import Path

from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.retrieval import VECTORS_UNWANTED, CodeQuery, SignalKind
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
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
