"""Whatever a server is waited for, an abort ends it at once, and frees the connection."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from tests.adapters.llama_cpp.answers import ask, collect
from tests.fakes.faulty_server import Answer, FaultyServer, as_json, delta, error, event, stream

Do = Callable[[LlamaCppModel], Awaitable[object]]
HOUR = 3600.0


async def _answer(model: LlamaCppModel) -> object:
    return await collect(model, ask(answer_seconds=HOUR, grammar='root ::= "a"'))


async def _count(model: LlamaCppModel) -> object:
    return await model.count_tokens(["a", "b"])


async def _observe(model: LlamaCppModel) -> object:
    return await model.observe()


def _progress(done: int) -> bytes:
    return event({"prompt_progress": {"total": 9, "cache": 0, "processed": done}})


LATER = Answer(429, [b"{}"], headers={"Retry-After": "600"})
PLACES: dict[str, tuple[str, tuple[Answer, ...], Do]] = {
    "health": ("/health", (stream(asyncio.Event()),), _observe),
    "loading": ("/health", (error(503, "Loading model", "unavailable_error"),), _observe),
    "props": ("/props", (stream(b"{", asyncio.Event()),), _observe),
    "counting": ("/tokenize", (as_json({"tokens": [1]}), stream(asyncio.Event())), _count),
    "busy": ("/v1/chat/completions", (LATER,), _answer),
    "loading again": ("/v1/chat/completions", (error(503, "Loading model"),), _answer),
    "head": ("/v1/chat/completions", (stream(asyncio.Event()),), _answer),
    "prompt": ("/v1/chat/completions", (stream(_progress(1), asyncio.Event()),), _answer),
    "middle": ("/v1/chat/completions", (stream(delta("a"), b'data: {"choi', asyncio.Event()),), _answer),
    "refusal": ("/v1/chat/completions", (Answer(400, [b'{"error', asyncio.Event()]),), _answer),
}


@asynccontextmanager
async def _asked(place: str) -> AsyncGenerator[tuple[FaultyServer, LlamaCppModel, Do]]:
    path, answers, do = PLACES[place]
    async with FaultyServer().on(path, *answers) as server:
        model = LlamaCppModel(server.url, ready_seconds=HOUR)
        yield server, model, do
        await model.close()


@pytest.mark.parametrize("place", PLACES)
async def test_an_abort_ends_it_at_once(place: str) -> None:
    path, answers, _ = PLACES[place]
    async with _asked(place) as (server, model, do):
        task = asyncio.ensure_future(do(model))
        async with asyncio.timeout(10):
            while len(server.asked(path)) < len(answers):  # noqa: ASYNC110 - a request that came sets no event
                await asyncio.sleep(0.01)
        task.cancel()
        async with asyncio.timeout(1):
            await asyncio.wait({task})
        assert task.cancelled()


async def test_a_server_that_takes_the_connection_and_says_nothing_is_left_at_once() -> None:
    came, gone = asyncio.Event(), asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read(-1)
        gone.set()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        model = LlamaCppModel(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        task = asyncio.ensure_future(model.observe())
        await came.wait()
        task.cancel()
        async with asyncio.timeout(1):
            await asyncio.wait({task})
            await gone.wait()
        await model.close()
