"""A real server is found by what it lists; what else listens there neither hangs nor writes anything."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent_workbench.adapters.llama_cpp.model_servers import (
    ServerCandidate,
    candidates,
    find_servers,
)
from agent_workbench.core.local_models import FoundModels, FoundServer, ListedModel, ModelStatus
from tests.fakes.faulty_server import FaultyServer, as_json
from tests.llama_fixtures import CONTEXT_TOKENS, LlamaServer

SECONDS = 0.3
UNLOADED = ModelStatus.UNLOADED


@asynccontextmanager
async def listening(answer: bytes, *, endless: bytes = b"") -> AsyncIterator[ServerCandidate]:
    """A server that answers each request so, then goes on with `endless` until nobody reads."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if await reader.read(4096):
                writer.write(answer)
                await writer.drain()
                while endless:
                    writer.write(endless)
                    await writer.drain()
                await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield ServerCandidate("Ollama", f"http://127.0.0.1:{port}")


def http(body: object, status: str = "200 OK") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def listed(*names: object, **more: object) -> bytes:
    return http({"data": [{"id": name, **more} for name in names]})


async def test_a_server_of_llama_cpp_is_known_by_what_it_lists(keyless_server: str) -> None:
    (found,) = await find_servers((ServerCandidate("vLLM", keyless_server),), 30)
    assert found == FoundServer(
        "llama-server", keyless_server, (ListedModel("tiny", CONTEXT_TOKENS),), names_needed=False
    )
    (choice,) = FoundModels((found,)).choices
    assert choice.settings == {"url": keyless_server}


async def test_a_server_that_wants_a_key_is_said_and_not_offered(llama_server: LlamaServer) -> None:
    (found,) = await find_servers((ServerCandidate("llama-server", llama_server.url),), 30)
    assert "model.api_key_env" in found.problem
    assert FoundModels((found,)).choices == ()


async def test_models_of_text_are_offered_by_name() -> None:
    async with listening(listed("coder:7b", "nomic-embed-text", max_model_len=4096)) as ollama:
        (found,) = await find_servers((ollama,), 30)
    assert found.models == (ListedModel("coder:7b", 4096),)
    assert FoundModels((found,)).choices[0].settings == {"url": ollama.url, "name": "coder:7b"}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        http(b"<html>a web site</html>"),
        http(b"[" * 100_000),
        http({"data": {"id": "x"}}),
        http({"error": "x"}, "404 Not Found"),
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/v1/models\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n{",
    ],
)
async def test_what_is_no_model_server_is_not_found(answer: bytes) -> None:
    async with listening(answer) as candidate:
        assert await find_servers((candidate,), SECONDS) == ()


@pytest.mark.parametrize("endless", [b'{"id":"x"},' * 1000, b"\x1b]0;owned\x07" * 1000])
async def test_an_answer_without_end_is_given_up(endless: bytes) -> None:
    begins = b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"data":['
    async with listening(begins, endless=endless) as candidate:
        async with asyncio.timeout(20):
            assert await find_servers((candidate,), SECONDS) == ()


async def test_names_that_would_have_to_be_changed_are_not_offered() -> None:
    names = ("\x1b]0;owned\x07", "a\nurl: http://evil", "x" * 500, "\u202eabc", "", None, 3, "ok")
    async with listening(listed(*names)) as candidate:
        (found,) = await find_servers((candidate,), 30)
    assert [model.name for model in found.models] == ["ok"]


async def test_what_cannot_be_used_says_why() -> None:
    loading = http({"error": {"message": "Loading model", "code": 503}}, "503 Service Unavailable")
    foreign = http(b"<html>Loading</html>", "503 Service Unavailable")
    answers = (http({}, "401 Unauthorized"), loading, foreign, listed("bge-embed"))
    async with contextlib.AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(listening(answer)) for answer in answers]
        found = await find_servers(servers, 30)
    assert [each.problem for each in found] == [
        "wants an API key; set model.url and model.api_key_env",
        "is still loading its model",
        "lists no model of text",
    ]
    assert FoundModels(found).choices == ()


async def test_slow_ones_hold_up_nobody() -> None:
    async with listening(b"") as silent, listening(listed("fast")) as fast:
        found = await find_servers((silent, fast, silent), 2)
    assert found == (FoundServer("Ollama", fast.url, (ListedModel("fast"),)),)


def answering(routes: dict[str, object]) -> FaultyServer:
    server = FaultyServer().on("/health").on("/props").on("/tokenize")
    for path, said in routes.items():
        server.on(path, as_json(said))
    return server


async def test_what_ollama_has_loaded_comes_first_with_its_context() -> None:
    names = {"data": [{"id": "big:70b", "owned_by": "library"}, {"id": "coder:7b", "owned_by": "library"}]}
    loaded = {"models": [{"name": "coder:7b", "model": "coder:7b", "context_length": 4096}]}
    async with answering({"/v1/models": names, "/api/ps": loaded}) as server:
        (found,) = await find_servers((ServerCandidate("a server", server.url),), 30)
    assert found.program == "Ollama"
    loaded_model, other = ListedModel("coder:7b", 4096, ModelStatus.LOADED), ListedModel("big:70b", 0, UNLOADED)
    assert found.models == (loaded_model, other)


@pytest.mark.parametrize("older", [True, False])
async def test_what_lm_studio_has_loaded_comes_first_with_its_context(older: bool) -> None:
    names = {"data": [{"id": "a"}, {"id": "b"}, {"id": "text-embedding-x"}]}
    new = {"key": "b", "max_context_length": 9, "loaded_instances": [{"id": "b", "config": {"context_length": 8192}}]}
    old = {"id": "b", "state": "loaded", "max_context_length": 9, "loaded_context_length": 8192}
    own: dict[str, object] = {"/api/v0/models": {"data": [{"id": "a", "state": "not-loaded"}, old]}}
    if not older:
        own["/api/v1/models"] = {"models": [{"key": "a", "loaded_instances": []}, new]}
    async with answering({"/v1/models": names, **own}) as server:
        (found,) = await find_servers((ServerCandidate("vLLM", server.url),), 30)
    loaded = ListedModel("b", 8192, ModelStatus.LOADED)
    assert (found.program, found.models) == ("LM Studio", (loaded, ListedModel("a", 0, UNLOADED)))


async def test_a_router_offers_its_models_the_loaded_ones_first() -> None:
    entries = [
        {"id": name, "owned_by": "llamacpp", "status": {"value": state}}
        for name, state in (("a", "unloaded"), ("b", "loaded"), ("c", "loading"))
    ]
    async with answering({"/v1/models": {"data": entries}}) as server:
        url = server.url
        (found,) = await find_servers((ServerCandidate("llama-server", url),), 30)
    assert [model.name for model in found.models] == ["b", "a", "c"]
    assert FoundModels((found,)).choices[0].settings == {"url": url, "name": "b"}


async def test_nothing_secret_is_sent_to_what_was_found() -> None:
    async with answering({"/v1/models": {"data": [{"id": "m"}]}}) as server:
        port = server.url.rpartition(":")[2]
        environ = {"OPENAI_BASE_URL": f"http://mia:secret@localhost:{port}/v1", "OPENAI_API_KEY": "secret"}
        named = candidates(environ)[0]
        assert named.url == f"http://localhost:{port}"
        await find_servers((named,), 30)
        assert server.requests
        for request in server.requests:
            assert "authorization" not in {name.lower() for name in request.headers}
            assert b"secret" not in request.body


def test_newer_and_older_servers_of_llama_cpp_are_looked_for() -> None:
    assert [each.url for each in candidates({})] == [
        *("http://127.0.0.1:9931", "http://127.0.0.1:8080", "http://127.0.0.1:11434"),
        *("http://127.0.0.1:1234", "http://127.0.0.1:8000"),
    ]


@pytest.mark.parametrize(
    ("environ", "program", "url"),
    [
        ({"LLAMA_ARG_PORT": "9000"}, "llama-server", "http://127.0.0.1:9000"),
        ({"LLAMA_ARG_PORT": "9000", "LLAMA_ARG_HOST": "0.0.0.0"}, "llama-server", "http://127.0.0.1:9000"),
        ({"LLAMA_ARG_PORT": "9000", "LLAMA_ARG_HOST": "::1"}, "llama-server", "http://[::1]:9000"),
        ({"LLAMA_ARG_PORT": "9000", "LLAMA_ARG_HOST": "::"}, "llama-server", "http://[::1]:9000"),
        ({"OLLAMA_HOST": ":11500"}, "Ollama", "http://127.0.0.1:11500"),
        ({"OLLAMA_HOST": "::"}, "Ollama", "http://[::1]:11434"),
        ({"OLLAMA_API_BASE": "http://localhost:11435"}, "Ollama", "http://localhost:11435"),
        ({"LM_STUDIO_API_BASE": "http://localhost:1235/v1"}, "LM Studio", "http://localhost:1235"),
        ({"HOSTED_VLLM_API_BASE": "http://[::1]:8001/v1/"}, "vLLM", "http://[::1]:8001"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:5000/engines/v1"}, "a server", "http://127.0.0.1:5000/engines"),
        ({"OPENAI_API_BASE": "http://127.0.0.1:5000/v1"}, "a server", "http://127.0.0.1:5000"),
    ],
)
def test_variables_of_other_programs_say_where_a_server_is(environ: dict[str, str], program: str, url: str) -> None:
    assert candidates(environ)[0] == ServerCandidate(program, url)


@pytest.mark.parametrize(
    "said",
    [
        "https://api.openai.com/v1",
        "http://10.0.0.2:8000/v1",
        "https://localhost:8000/v1",
        "http://localhost:99999999",
        "http://localhost:80/\x1b]0;x",
        "http://evil.example#@localhost",
        "  ",
    ],
)
def test_an_address_elsewhere_is_not_asked(said: str) -> None:
    assert candidates({"OPENAI_BASE_URL": said}) == candidates({})


def test_a_server_that_several_variables_name_is_asked_once() -> None:
    environ = {"OPENAI_BASE_URL": "http://localhost:1234/v1", "LM_STUDIO_API_BASE": "http://127.0.0.1:1234/v1"}
    assert [each.url for each in candidates(environ) if each.url.endswith(":1234")] == ["http://127.0.0.1:1234"]


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ("127.0.0.1:999", "http://127.0.0.1:999"),
        ("http://localhost:999", "http://localhost:999"),
        ("http://localhost", "http://localhost:80"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        # Only this machine is looked at.
        ("10.0.0.2:999", "http://127.0.0.1:11434"),
        ("https://127.0.0.1", "http://127.0.0.1:11434"),
        ("127.0.0.1:99999999", "http://127.0.0.1:11434"),
        ("[::1", "http://127.0.0.1:11434"),
        ("", "http://127.0.0.1:11434"),
    ],
)
def test_ollama_is_looked_for_where_its_variable_says(said: str, url: str) -> None:
    assert [each.url for each in candidates({"OLLAMA_HOST": said}) if each.program == "Ollama"] == [url]
