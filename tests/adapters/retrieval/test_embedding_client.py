"""The client over llama.cpp's own server, and over servers that fail as a real one cannot be made to."""

import asyncio
import gzip
import os
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.adapters.retrieval.embedding_client import EmbeddingClient, EmbeddingFailed
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings
from agent_workbench.core.settings.models import ServingSettings
from tests.llama_fixtures import LlamaServer

pytestmark = pytest.mark.xdist_group("embeddings")
PAUSE = "agent_workbench.adapters.retrieval.embedding_client._FIRST_PAUSE_SECONDS"


def client_of(url: str, key: str = "", model: str = "") -> EmbeddingClient:
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, url, model=model, api_key_env="VECTORS_KEY")
    return EmbeddingClient(settings, {"VECTORS_KEY": key})


async def test_vectors_come_in_the_order_of_the_texts_with_length_1(embedding_server: LlamaServer) -> None:
    client = client_of(f"{embedding_server.url}/v1/", embedding_server.api_key)
    texts = [f"def f{number}(): return {number * 17}" for number in range(40)]
    many = await client.embed(texts)
    assert many.shape == (40, 16)
    assert np.allclose(np.linalg.norm(many, axis=1), 1, atol=1e-4)
    assert np.allclose((await client.embed([texts[38]]))[0], many[38], atol=1e-3)
    bill, invoice, kite = await client.embed(["bill", "invoice", "kite"])
    assert bill @ invoice > 0.95 > bill @ kite
    await client.close()


@pytest.mark.parametrize("text", ["a b c d e f " * 2_000, "invoice" * 5_000, "\ud800 lone surrogate", "\0"])
async def test_a_text_may_be_too_long_or_odd(embedding_server: LlamaServer, text: str) -> None:
    client = client_of(embedding_server.url, embedding_server.api_key)
    assert (await client.embed(["x = 1", text])).shape == (2, 16)
    await client.close()


async def test_a_server_without_embeddings_is_named_with_what_to_do(llama_server: LlamaServer) -> None:
    client = client_of(llama_server.url, llama_server.api_key)
    with pytest.raises(EmbeddingFailed, match="start llama-server with --embeddings"):
        await client.embed(["x"])
    await client.close()


@pytest.mark.parametrize(("key", "said"), [("wrong", "401"), ("a\nb", "holds characters"), ("schlüssel", "holds")])
async def test_a_key_that_is_refused_or_none_is_told_and_never_shown(
    embedding_server: LlamaServer, key: str, said: str
) -> None:
    client = client_of(embedding_server.url, key)
    with pytest.raises(EmbeddingFailed, match=said) as failed:
        await client.embed(["x"])
    assert key not in str(failed.value)
    await client.close()


async def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PAUSE, 0.001)
    client = client_of("http://127.0.0.1:9")
    with pytest.raises(EmbeddingFailed, match=r"127\.0\.0\.1:9"):
        await client.embed(["x"])
    await client.close()


async def test_a_server_of_ours_starts_with_the_first_text_and_again_after_its_death(
    embedding_model_path: Path, tmp_path: Path
) -> None:
    server = EmbeddedServer(
        embedding_model_path, log=tmp_path / "log", environ=os.environ, serving=ServingSettings(512), embeddings=True
    )
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, path=str(embedding_model_path))
    client = EmbeddingClient(settings, {}, server)
    assert not server.running
    first = await client.embed(["invoice"])
    killed = server.pid
    os.kill(killed, 9)
    await server.ended()
    assert np.allclose(await client.embed(["invoice"]), first)
    assert server.pid != killed
    await client.close()
    assert not server.running


async def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_text("nothing")
    server = EmbeddedServer(file, log=tmp_path / "log", environ=os.environ, embeddings=True)
    client = EmbeddingClient(EmbeddingSettings(EmbeddingProvider.SERVER, path=str(file)), {}, server)
    with pytest.raises(EmbeddingFailed, match="no GGUF file"):
        await client.embed(["x"])
    await client.close()


def test_vectors_of_another_model_have_another_folder(tmp_path: Path) -> None:
    names = {client_of(url, model=model).name for url in ("http://a", "http://b") for model in ("", "m")}
    assert len(names) == 4
    assert len({client_of(f"http://a{path}").name for path in ("", "/", "/v1", "/v1/", "/v1/embeddings")}) == 1
    file = tmp_path / "model.gguf"
    settings = EmbeddingSettings(EmbeddingProvider.SERVER, path=str(file))
    server = EmbeddedServer(file, log=tmp_path / "log", environ={})
    for content in (None, "a", "ab"):
        if content is not None:
            file.write_text(content)
        names.add(EmbeddingClient(settings, {}, server).name)
    assert len(names) == 7
    assert all(name.replace("-", "").isalnum() for name in names)


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def faulty_server(answer: Answer) -> AsyncIterator[str]:
    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e300", "NaN", "1e999", '"1"', "[" * 100_000, "null"])
async def test_an_answer_without_vectors_is_refused(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # which is not for servers on this machine

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = f'{{"data": [{{"index": 0, "embedding": [{number}]}}]}}'
        writer.write(f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    async with faulty_server(answer) as url:
        client = client_of(url)
        with pytest.raises(EmbeddingFailed, match="holds no vectors"):
            await client.embed(["x"])
        await client.close()


async def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PAUSE, 0.001)
    asked = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.append(1)
        body = b'{"data": [{"index": 0, "embedding": [3, 4]}]}'
        status = b"503 Busy" if len(asked) < 3 else b"200 OK"
        writer.write(b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    async with faulty_server(answer) as url:
        client = client_of(url)
        assert np.allclose(await client.embed(["x"]), [[0.6, 0.8]])
        assert len(asked) == 3
        await client.close()


async def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.embedding_client._MAX_ANSWER_BYTES", 100_000)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        try:
            while True:
                writer.write(b" " * 65_536)
                await writer.drain()
        except ConnectionError:
            writer.close()

    async with faulty_server(answer) as url:
        client = client_of(url)
        with pytest.raises(EmbeddingFailed, match="more than 100,000 bytes"):
            await client.embed(["x"])
        await client.close()


async def test_an_answer_is_never_unpacked() -> None:
    # Packed twice, 60 MB are a few hundred bytes; 1 GB would be no more than 3 kB.
    packed = gzip.compress(gzip.compress(b" " * 60_000_000))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip, gzip\r\n\r\n" + packed)
        await writer.drain()
        writer.close()

    async with faulty_server(answer) as url:
        client = client_of(url)
        tracemalloc.start()
        try:
            with pytest.raises(EmbeddingFailed, match="holds no vectors"):
                await client.embed(["x"])
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()
            await client.close()


async def test_a_redirection_takes_the_key_nowhere() -> None:
    asked: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async with faulty_server(elsewhere) as other:

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 307 Elsewhere\r\nLocation: {other}/v1/embeddings\r\nContent-Length: 0\r\n\r\n"
            writer.write(head.encode())
            await writer.drain()
            writer.close()

        async with faulty_server(answer) as url:
            client = client_of(url, "planted-key")
            with pytest.raises(EmbeddingFailed, match="answered 307"):
                await client.embed(["x"])
            await client.close()
    assert asked == []


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.embedding_client._ANSWER_SECONDS", 0.05)
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async with faulty_server(answer) as url:
        client = client_of(url)
        with pytest.raises(EmbeddingFailed, match="did not answer within"):
            await client.embed(["x"])
        await client.close()
        over.set()
