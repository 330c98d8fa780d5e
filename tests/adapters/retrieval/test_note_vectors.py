"""Vectors of notes: a note that shares no word with the search is found, and a failing server costs nothing."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval.folder_vectors import PLAYBOOKS
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.repo.retrieval import SignalKind
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
from agent_workbench.subjects.knowledge.adapter import KnowledgeFolder
from agent_workbench.subjects.playbooks_search_adapter import blob_id
from tests.adapters.retrieval.test_embedding_client import PAUSE
from tests.llama_fixtures import LlamaServer

FIRST = "agent_workbench.adapters.retrieval.folder_vectors._FIRST_SECONDS"
NOTES = {
    "payment": "every bill is checked by two people",
    "flying": "a glider needs wind",
    "syntax": "we tokenize before we look",
    "other": "nothing of that",
}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search wait for the first vectors however busy the machine is: chromadb takes its time to start."""
    monkeypatch.setattr(FIRST, 300.0)


def retriever_of(url: str, folder: Path, key: str = "") -> CodeRetriever:
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, url=url, api_key_env="NOTES_KEY")
    environ = {**os.environ, "NOTES_KEY": key}
    return CodeRetriever(RetrievalSettings(embeddings=settings), folder / "cache", environ)


def knowledge_of(retriever: CodeRetriever, root: Path) -> KnowledgeFolder:
    folder = root / "memory" / "knowledge"
    folder.mkdir(parents=True)
    for name, text in NOTES.items():
        (folder / f"{name}.md").write_text(f"{text}\n")
    return KnowledgeFolder(root, vectors=retriever.note_vectors(str(root)))


@pytest.mark.slow
async def test_a_note_is_found_by_its_vector(tmp_path: Path, embedding_server: LlamaServer) -> None:
    retriever = retriever_of(embedding_server.url, tmp_path, embedding_server.api_key)
    knowledge = await asyncio.to_thread(knowledge_of, retriever, tmp_path / "repo")
    try:
        (first, *_) = await knowledge.search("invoice", 3)
        assert first.note.name == "payment"
        assert [each.kind for each in first.signals] == [SignalKind.VECTOR]
        (first, *_) = await knowledge.search("glider kite", 3)
        assert first.note.name == "flying"
        assert {each.kind for each in first.signals} == {SignalKind.VECTOR, SignalKind.WORDS}
    finally:
        await knowledge.close()
        await retriever.close()


async def test_without_a_server_words_count_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PAUSE, 0.0)
    retriever = retriever_of("http://127.0.0.1:9", tmp_path)
    knowledge = await asyncio.to_thread(knowledge_of, retriever, tmp_path / "repo")
    try:
        (hit,) = await knowledge.search("glider", 3)
        assert (hit.note.name, [each.kind for each in hit.signals]) == ("flying", [SignalKind.WORDS])
    finally:
        await knowledge.close()
        await retriever.close()


async def test_unwanted_vectors_are_none(tmp_path: Path) -> None:
    retriever = CodeRetriever(RetrievalSettings(), tmp_path / "cache")
    assert retriever.note_vectors(str(tmp_path)) is None
    await retriever.close()


async def test_cosines_are_given_as_they_are_and_apart_from_those_of_notes(
    tmp_path: Path, embedding_server: LlamaServer
) -> None:
    retriever = retriever_of(embedding_server.url, tmp_path, embedding_server.api_key)
    vectors = await asyncio.to_thread(retriever.note_vectors, str(tmp_path), PLAYBOOKS)
    assert vectors is not None

    async def read(names: Sequence[str]) -> Mapping[str, bytes]:
        return {name: NOTES[name].encode() for name in names}

    try:
        assert await vectors.cosines("invoice") == {}
        vectors.update({name: blob_id(text.encode()) for name, text in NOTES.items()}, read)
        same = await vectors.cosines(NOTES["flying"])
        assert set(same) == set(NOTES)
        assert max(same, key=lambda name: same[name]) == "flying"
        assert all(-1.001 < each < 1.001 for each in same.values())
        assert same["flying"] > 0.99
    finally:
        await vectors.close()
        await retriever.close()
