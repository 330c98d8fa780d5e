"""Proxies of the environment for every client that leaves this machine: models, embeddings, the forge and the hub."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from agent_workbench.adapters.retrieval.embedding_client import EmbeddingClient, EmbeddingFailed
from agent_workbench.bootstrap.shared_resources import find_server_at
from agent_workbench.core.errors import ConfigError, ForgeError, ModelError, ModelUnavailable
from agent_workbench.core.settings import EmbeddingProvider, EmbeddingSettings
from agent_workbench.subjects.forge.client_adapter import ForgeApi
from agent_workbench.subjects.forge.http_adapter import AccountAnswer
from agent_workbench.subjects.models.hub_adapter import find_revision
from agent_workbench.subjects.models.model_files import read_hub_name
from tests.fakes.model_hub import COMMIT
from tests.fakes.socks_proxy import socks_proxy

# The HTTP library leaves the socket to the collector where a proxy does not speak SOCKS.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

FAR = "http://far.example"
ANSWER = {
    "data": [{"id": "m", "index": 0, "embedding": [1.0]}],
    "id": 1,
    "login": "ada",
    "sha": COMMIT,
    "siblings": [],
}
Ask = Callable[[], Awaitable[object]]


async def _model() -> None:
    model = LlamaCppModel(FAR)
    try:
        await model.observe()
    finally:
        await model.close()


async def _vectors() -> None:
    client = EmbeddingClient(EmbeddingSettings(EmbeddingProvider.SERVER, FAR), {})
    try:
        await client.embed(["x"])
    finally:
        await client.close()


async def _forge() -> None:
    api = ForgeApi(FAR, "token", plain_http=True)
    try:
        await api.get("/api/v1/user", AccountAnswer)
    finally:
        await api.close()


async def _search() -> None:
    (found,) = (await find_server_at(FAR)).servers
    assert [model.name for model in found.models] == ["m"]


async def _hub() -> None:
    await asyncio.to_thread(find_revision, read_hub_name("ada/m"))


CLIENTS: tuple[tuple[Ask, type[Exception], type[Exception]], ...] = (
    (_model, ConfigError, ModelUnavailable),
    (_vectors, EmbeddingFailed, EmbeddingFailed),
    (_forge, ConfigError, ForgeError),
    (_hub, ConfigError, ModelError),
    (_search, ConfigError, ValueError),
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("http", "https", "all", "no"):
        for spelled in (f"{name}_proxy", f"{name.upper()}_PROXY"):
            monkeypatch.delenv(spelled, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", FAR)
    yield
    gc.collect()


@asynccontextmanager
async def answering(body: bytes) -> AsyncIterator[int]:
    """Serve one answer for every request, and yield the port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(("ask", "refused", "failed"), CLIENTS)
async def test_a_client_works_through_socks_and_says_what_is_wrong_with_a_proxy(
    monkeypatch: pytest.MonkeyPatch, ask: Ask, refused: type[Exception], failed: type[Exception]
) -> None:
    async with answering(json.dumps(ANSWER).encode()) as port, socks_proxy(port) as (proxy, asked):
        monkeypatch.setenv("ALL_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", "elsewhere.example, 10.0.0.0/8")
        await ask()
        assert set(asked) == {"far.example"}
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{port}")  # which does not speak SOCKS
        with pytest.raises(failed):
            await ask()
        monkeypatch.setenv("ALL_PROXY", "socks://127.0.0.1:1080")
        with pytest.raises(refused, match="ALL_PROXY"):
            await ask()


@pytest.mark.parametrize(
    "no_proxy", ["[::1],far.example", "a b,far.example", "x:y,far.example", "http://[,far.example"]
)
@pytest.mark.parametrize(("ask", "refused", "failed"), CLIENTS)
async def test_no_spelling_of_no_proxy_is_a_defect(
    monkeypatch: pytest.MonkeyPatch, ask: Ask, refused: type[Exception], failed: type[Exception], no_proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    monkeypatch.setattr("agent_workbench.adapters.retrieval.embedding_client._FIRST_PAUSE_SECONDS", 0.001)
    with pytest.raises((refused, failed)):
        await ask()
