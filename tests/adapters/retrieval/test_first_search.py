"""The first search of a session, with a real chromadb and a real llama.cpp: its result has what only vectors find."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.adapters.retrieval.retriever import CodeRetriever
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery, SignalKind
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings, RetrievalSettings
from agent_workbench.core.settings.models import ServingSettings
from tests.fakes.folder_workspace import FolderWorkspace
from tests.llama_fixtures import LlamaServer

pytestmark = [pytest.mark.xdist_group("embeddings"), pytest.mark.slow]
SECONDS = "agent_workbench.adapters.retrieval.retriever._VECTOR_SECONDS"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait on a busy machine too: the bound has a test of its own."""
    monkeypatch.setattr(SECONDS, 60.0)


@pytest.fixture
def sources(tmp_path: Path) -> FolderWorkspace:
    """A repo in which no file has the word `bill`."""
    root = tmp_path / "repo"
    root.mkdir()
    for number, words in enumerate(("def invoice(customer):", "def kite(wind):", "def parse(syntax):") * 6):
        (root / f"part{number}.py").write_text(f"{words}\n    return {number}\n")
    return FolderWorkspace(root)


@asynccontextmanager
async def retriever_with(embeddings: EmbeddingSettings, tmp_path: Path) -> AsyncIterator[CodeRetriever]:
    def server(path: str) -> EmbeddedServer:
        log = tmp_path / "log" / "embeddings.log"
        return EmbeddedServer(Path(path), log=log, environ=os.environ, serving=ServingSettings(1_024), embeddings=True)

    settings = RetrievalSettings(embeddings=embeddings)
    retriever = CodeRetriever(settings, tmp_path / "cache", dict(os.environ), server)
    try:
        yield retriever
    finally:
        await retriever.close()


def found_by_vectors(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.path for chunk in chunks if SignalKind.VECTOR in {signal.kind for signal in chunk.signals}]


def of_server(server: LlamaServer, monkeypatch: pytest.MonkeyPatch) -> EmbeddingSettings:
    monkeypatch.setitem(os.environ, "EMBEDDINGS_KEY", server.api_key)
    return EmbeddingSettings(EmbeddingProvider.SERVER, server.url, api_key_env="EMBEDDINGS_KEY")


async def test_the_first_search_finds_by_vectors_from_an_endpoint(
    sources: FolderWorkspace, tmp_path: Path, embedding_server: LlamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = of_server(embedding_server, monkeypatch)
    for stored in (False, True):
        async with retriever_with(settings, tmp_path) as retriever:
            sources.reads.clear()
            chunks = await retriever.search(sources, CodeQuery("bill"), 3)
            assert retriever.status(sources).vectors == "ready"
        assert found_by_vectors(chunks) == [chunk.path for chunk in chunks]
        assert all("invoice" in chunk.text for chunk in chunks)
        assert len(chunks) == 3
        # The next session embeds nothing again.
        assert not stored or len(sources.reads) <= 18 + len(chunks)


async def test_the_first_search_finds_by_vectors_from_a_file_that_we_serve(
    sources: FolderWorkspace, tmp_path: Path, embedding_model_path: Path
) -> None:
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, path=str(embedding_model_path))
    before = set(psutil.Process().children())
    async with retriever_with(settings, tmp_path) as retriever:
        chunks = await retriever.search(sources, CodeQuery("bill"), 3)
        assert retriever.status(sources).vectors == "ready"
        assert all("invoice" in chunk.text for chunk in chunks)
        assert len(found_by_vectors(chunks)) == 3
    assert set(psutil.Process().children()) <= before


async def test_words_find_what_they_find_when_the_server_is_dead(sources: FolderWorkspace, tmp_path: Path) -> None:
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, "http://127.0.0.1:9")
    async with retriever_with(settings, tmp_path) as retriever:
        chunks = await retriever.search(sources, CodeQuery("invoice"), 3)
        assert all("invoice" in chunk.text for chunk in chunks)
        assert found_by_vectors(chunks) == []
        assert retriever.status(sources).vectors.startswith("off: http://127.0.0.1:9/v1/embeddings does not answer")


async def test_a_file_that_is_no_model_is_told_and_words_find(sources: FolderWorkspace, tmp_path: Path) -> None:
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, path=str(tmp_path / "no-model.gguf"))
    async with retriever_with(settings, tmp_path) as retriever:
        assert await retriever.search(sources, CodeQuery("invoice"), 3)
        assert retriever.status(sources).vectors.startswith("off: the model")


async def test_a_server_that_never_answers_holds_up_one_search_for_its_bound_and_the_end_not_at_all(
    sources: FolderWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SECONDS, 0.5)
    over = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1") as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with (
            asyncio.timeout(60),
            retriever_with(EmbeddingSettings(EmbeddingProvider.SERVER, url), tmp_path) as retriever,
        ):
            for _ in range(2):
                assert await retriever.search(sources, CodeQuery("invoice"), 3)
            while retriever.status(sources).vectors != "0 of 18 files embedded":  # noqa: ASYNC110 - by another process
                await asyncio.sleep(0.01)
        over.set()


async def test_a_repo_without_files_waits_for_nothing(tmp_path: Path, embedding_model_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = FolderWorkspace(tmp_path / "empty")
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, path=str(embedding_model_path))
    async with retriever_with(settings, tmp_path) as retriever:
        assert await retriever.search(empty, CodeQuery("bill"), 3) == ()
        assert retriever.status(empty).vectors == "ready"
