"""Vectors of a real embedding model: code that shares no word with the query is found, at the first search too.

The tests run where `AGENT_TEST_EMBEDDING_MODEL` is the path of a GGUF file, such as all-MiniLM-L6-v2.
"""

import os
from pathlib import Path

import pytest

from agent_workbench.core.repo.retrieval import CodeQuery, SignalKind
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings
from tests.adapters.retrieval.test_first_search import SECONDS, found_by_vectors, retriever_with
from tests.fakes.folder_workspace import FolderWorkspace

MODEL = os.environ.get("AGENT_TEST_EMBEDDING_MODEL", "")
pytestmark = [
    pytest.mark.skipif(
        not MODEL, reason="machine lacks: a trained embedding model (AGENT_TEST_EMBEDDING_MODEL names its GGUF file)"
    ),
    pytest.mark.xdist_group("embeddings"),
]
TEXTS = {
    "billing.py": "Charge customers: write an invoice for what they bought, and send it by mail.",
    "weather.py": "Forecast rain and wind for the next days from measured pressure.",
    "parser.py": "Read source text into a syntax tree, and report where the grammar does not fit.",
    "login.py": "Check passwords and keep people signed in with a cookie.",
    "images.py": "Scale and crop photographs, and store them as thumbnails.",
}
QUESTIONS = {
    "what does somebody owe us money": "billing.py",
    "will there be a storm tomorrow": "weather.py",
    "compiler front end": "parser.py",
    "security of accounts": "login.py",
    "smaller pictures": "images.py",
}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine embed all files before the first search gives up on vectors."""
    monkeypatch.setattr(SECONDS, 60.0)


@pytest.fixture
def sources(tmp_path: Path) -> FolderWorkspace:
    root = tmp_path / "repo"
    root.mkdir()
    for name, text in TEXTS.items():
        (root / name).write_text(f'"""{text}"""\n\n\ndef main(): ...\n')
    # Longer than the model takes at once, and text that is dense in tokens.
    (root / "long.txt").write_text("0x" + " ".join(f"{number:08x}" for number in range(4_000)))
    return FolderWorkspace(root)


async def test_the_meaning_of_a_question_finds_code_with_other_words(sources: FolderWorkspace, tmp_path: Path) -> None:
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, path=MODEL)
    async with retriever_with(settings, tmp_path) as retriever:
        for question, wanted in QUESTIONS.items():
            chunks = await retriever.search(sources, CodeQuery(question), 3)
            assert retriever.status(sources).vectors == "ready"
            assert chunks[0].path == wanted, question
            assert SignalKind.VECTOR in {signal.kind for signal in chunks[0].signals}


async def test_the_next_session_loads_the_vectors_for_its_first_search(
    sources: FolderWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.repo_vectors._WORTH_STORING", 1)
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, path=MODEL)
    for _ in range(2):
        sources.reads.clear()
        async with retriever_with(settings, tmp_path) as retriever:
            chunks = await retriever.search(sources, CodeQuery("smaller pictures"), 1)
            assert found_by_vectors(chunks) == ["images.py"]
    # Each file was read once, for the comparison with the saved index, and the result.
    assert len(sources.reads) <= len(TEXTS) + 1 + 1
