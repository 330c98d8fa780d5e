"""Vectors by a model: llama.cpp's server, and an ONNX model's process."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from agent_workbench.adapters.retrieval.vectors.embedding import MOST_PARTS, PART_CHARS, EmbeddingFailed, parts_of
from agent_workbench.adapters.retrieval.vectors.embedding_client import EmbeddingClient
from agent_workbench.adapters.retrieval.vectors.onnx_model import OnnxModel
from agent_workbench.adapters.retrieval.vectors.repo_vectors import RepoVectors
from agent_workbench.adapters.retrieval.vectors.vector_table import FileVectors
from agent_workbench.adapters.retrieval.vectors.vectors import READY, Asked
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings
from tests.adapters.retrieval.vectors.corpora import corpus, topics

pytestmark = pytest.mark.xdist_group("embeddings")
ENVIRON = {**os.environ, "VECTORS_KEY": "secret"}


def model(url: str) -> EmbeddingClient:
    return EmbeddingClient(EmbeddingSettings(EmbeddingProvider.SERVER, url, api_key_env="VECTORS_KEY"), ENVIRON)


async def test_vectors_come_from_llama_cpp_in_order_and_of_length_1(embeddings_url: str) -> None:
    served = model(embeddings_url)
    texts = [f"def f{number}(): return {number * 17}" for number in range(20)]
    many = await served.embed(texts)
    assert np.allclose(np.linalg.norm(many, axis=1), 1, atol=1e-4)
    assert np.allclose((await served.embed([texts[18]]))[0], many[18], atol=1e-3)
    await served.close()


async def test_of_a_text_that_is_too_long_the_beginning_has_to_do(embeddings_url: str) -> None:
    served = model(embeddings_url)
    assert len(await served.embed(["x = 1", "a b c d e f " * 2000])) == 2
    await served.close()


async def test_a_server_without_embeddings_says_so(chat_url: str) -> None:
    served = model(chat_url)
    with pytest.raises(EmbeddingFailed, match="--embeddings"):
        await served.embed(["x"])
    await served.close()


async def test_a_key_that_is_refused_and_a_server_that_is_not_there_are_told(
    embeddings_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = EmbeddingClient(EmbeddingSettings(EmbeddingProvider.SERVER, embeddings_url), {})
    with pytest.raises(EmbeddingFailed, match="401"):
        await refused.embed(["x"])
    await refused.close()
    monkeypatch.setattr("agent_workbench.adapters.retrieval.vectors.embedding_client._PAUSE_SECONDS", 0.001)
    nobody = model("http://127.0.0.1:9")
    with pytest.raises(EmbeddingFailed, match=r"127\.0\.0\.1:9"):
        await nobody.embed(["x"])
    await nobody.close()


async def test_files_are_embedded_kept_and_found(embeddings_url: str, tmp_path: Path) -> None:
    files = topics(10)
    read: list[str] = []
    got: list[FileVectors] = []

    async def contents(paths: Sequence[str]) -> Mapping[str, bytes]:
        read.extend(paths)
        # One is gone by now.
        return {path: " ".join(files[path]).encode() for path in paths if path != "money/4.py"}

    first = RepoVectors(model(embeddings_url), tmp_path / "repo", os.environ)
    await first.update(corpus(files), contents, got.append)
    assert first.standing == READY
    found = await first.similar(got[-1], Asked(" ".join(files["flight/3.py"]), {}), 3)
    assert next(iter(found)) == "flight/3.py"
    assert next(iter(found.values())) == pytest.approx(1, abs=1e-3)
    await first.close()
    read.clear()
    second = RepoVectors(model(embeddings_url), tmp_path / "repo", os.environ)
    await second.update(corpus(files), contents, got.append)
    assert read == ["money/4.py"]
    assert len(got[-1].paths) == 9
    await second.close()


async def test_a_server_that_fails_turns_vectors_off_until_it_answers(chat_url: str, tmp_path: Path) -> None:
    vectors = RepoVectors(model(chat_url), tmp_path / "repo", os.environ)

    async def contents(paths: Sequence[str]) -> Mapping[str, bytes]:
        return dict.fromkeys(paths, b"x")

    await vectors.update(corpus(topics(2)), contents, lambda _: None)
    await vectors.update(corpus(topics(2)), contents, lambda _: None)
    assert vectors.standing.startswith("off: the server has no embeddings")
    await vectors.close()


async def test_a_folder_without_an_onnx_model_is_told(tmp_path: Path) -> None:
    onnx = OnnxModel(tmp_path, os.environ)
    with pytest.raises(EmbeddingFailed, match=r"tokenizer.json|No such file"):
        await onnx.embed(["x"])
    await asyncio.gather(onnx.close())


def test_a_file_is_represented_by_its_first_parts() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    parts = parts_of(text.encode())
    assert len(parts) == MOST_PARTS
    assert all(len(part) <= PART_CHARS and part.endswith("\n") for part in parts)
    assert "".join(parts) == text[: sum(map(len, parts))]
    assert parts_of(b"") == parts_of(b" \n") == ["empty"]


class SlowModel:
    """A model whose answers come when they are let."""

    name = "slow"

    def __init__(self) -> None:
        self.asked = 0
        self.let = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += 1
        await self.let.wait()
        return np.ones((len(texts), 2), np.float32)

    async def close(self) -> None:
        """Nothing runs."""


async def test_a_model_that_hangs_is_asked_once_and_not_by_every_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.vectors.repo_vectors._QUERY_SECONDS", 0.001)
    slow = SlowModel()
    vectors = RepoVectors(slow, tmp_path, os.environ)
    files = FileVectors(["a.py"], np.zeros(1, np.int64), np.ones((1, 2), np.float32))
    for _ in range(3):
        assert await vectors.similar(files, Asked("x", {}), 1) == {}
    assert (slow.asked, vectors.standing) == (1, "off: the model is slow to answer")
    slow.let.set()
    monkeypatch.undo()
    for _ in range(3):  # the answer comes, and is heard
        await asyncio.sleep(0)
    assert list(await vectors.similar(files, Asked("x", {}), 1)) == ["a.py"]
    assert vectors.standing == READY
    await vectors.close()


async def test_a_closed_onnx_model_starts_no_process(tmp_path: Path) -> None:
    onnx = OnnxModel(tmp_path, os.environ)
    await onnx.close()
    with pytest.raises(EmbeddingFailed, match="was ended"):
        await onnx.embed(["x"])


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e300", "NaN", "1e999", '"1"', "[" * 100_000])
async def test_a_server_that_answers_nonsense_fails_as_any_other(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # which is not for servers on this machine

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = f'{{"data": [{{"index": 0, "embedding": [{number}]}}]}}'
        writer.write(f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        served = model(f"http://127.0.0.1:{port}")
        with pytest.raises(EmbeddingFailed, match="something else"):
            await served.embed(["x"])
        await served.close()
