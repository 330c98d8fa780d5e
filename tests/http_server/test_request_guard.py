"""Who is answered over HTTP: the guard as a plain ASGI application, without a server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent_workbench import http_server
from agent_workbench.http_server import (
    LOOPBACK,
    MAX_BODY_BYTES,
    BearerToken,
    Message,
    Receive,
    RequestGuard,
    Scope,
    Send,
    listen,
    serve,
)

PORT = 4321
TOKEN = "the-token"
RIGHT = {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {TOKEN}"}


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def asked(
    *headers: tuple[str, str], body: AsyncIterator[bytes] | None = None, kind: str = "http", name: str = ""
) -> int:
    """Return the status of the answer to a request with these headers."""
    answers: list[Message] = []

    async def receive() -> Message:
        if body is None:
            return {"type": "http.request", "body": b"{}"}
        async for piece in body:
            return {"type": "http.request", "body": piece, "more_body": True}
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        answers.append(message)

    scope = {"type": kind, "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers]}
    await RequestGuard(echo, BearerToken(TOKEN), PORT, name)(scope, receive, send)
    return int(answers[0]["status"])


def with_right(**other: str) -> tuple[tuple[str, str], ...]:
    return tuple({**RIGHT, **other}.items())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (with_right(), 200),
        (with_right(host=f"localhost:{PORT}", origin=f"http://localhost:{PORT}"), 200),
        (with_right(authorization=f"bearer {TOKEN}"), 200),
        (with_right(host="127.0.0.1"), 421),
        (with_right(host=f"evil.example:{PORT}"), 421),
        (with_right(host=f"127.0.0.1:{PORT}.evil.example"), 421),
        (with_right(host=""), 421),
        (tuple(each for each in with_right() if each[0] != "host"), 421),
        ((("host", f"127.0.0.1:{PORT}"), *with_right()), 421),
        (with_right(origin="http://evil.example"), 403),
        (with_right(origin="null"), 403),
        (with_right(origin=f"https://127.0.0.1:{PORT}"), 403),
        ((*with_right(origin=f"http://127.0.0.1:{PORT}"), ("origin", "http://evil.example")), 403),
        (with_right(authorization=""), 401),
        (with_right(authorization="Bearer guessed"), 401),
        (with_right(authorization=f"Bearer {TOKEN}x"), 401),
        (with_right(authorization=f"Bearer {'x' * 100_000}"), 401),
        (with_right(authorization="Bearer \xe9"), 401),
        (with_right(authorization=f"Basic {TOKEN}"), 401),
        ((*with_right(), ("authorization", "Bearer guessed")), 401),
        ((("host", f"127.0.0.1:{PORT}"),), 401),
        (with_right(**{"content-length": "99999999"}), 413),
        (with_right(**{"content-length": "9" * 5_000}), 413),
    ],
)
async def test_only_those_with_host_origin_and_token_are_answered(
    headers: tuple[tuple[str, str], ...], status: int
) -> None:
    assert await asked(*headers) == status


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({}, 200),
        ({"host": f"agent.example:{PORT}", "origin": f"http://agent.example:{PORT}"}, 200),
        ({"host": "agent.example", "origin": "https://agent.example"}, 200),
        ({"host": "agent.example.evil"}, 421),
        ({"host": f"other.example:{PORT}"}, 421),
        ({"host": "agent.example", "origin": "https://other.example"}, 403),
        ({"host": "agent.example", "authorization": ""}, 401),
    ],
)
async def test_a_named_server_answers_to_that_name_too(other: dict[str, str], status: int) -> None:
    assert await asked(*with_right(**other), name="agent.example") == status


async def test_a_socket_is_refused() -> None:
    assert await asked(*with_right(), kind="websocket") == 403


async def test_a_body_that_never_ends_is_refused() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1_000_000

    assert await asked(*with_right(), body=endless()) == 413


async def test_a_body_that_trickles_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    monkeypatch.setattr(http_server, "BODY_SECONDS", 0.0)
    assert await asked(*with_right(), body=silent()) == 408


@pytest.mark.parametrize(("host", "size"), [("evil.example", 3_000_000), ("", 3_000_000), ("", MAX_BODY_BYTES + 1)])
async def test_a_refused_client_that_is_still_sending_reads_why(host: str, size: int) -> None:
    with listen(LOOPBACK, 0, "--port") as listening:
        port = listening.getsockname()[1]
        serving = asyncio.ensure_future(serve(RequestGuard(echo, BearerToken(TOKEN), port), listening))
        reading, writing = await asyncio.open_connection(LOOPBACK, port)
        head = f"POST / HTTP/1.1\r\nHost: {host or f'{LOOPBACK}:{port}'}\r\nContent-Length: {size}\r\n\r\n"
        writing.write(head.encode() + b"x" * size)
        await writing.drain()
        answer = await reading.read()
        writing.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert answer.startswith(b"HTTP/1.1 421" if host else b"HTTP/1.1 401")
