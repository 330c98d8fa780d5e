"""A server that does what a real one cannot be brought to do: trickle, die in the middle, never end, say nonsense."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Self

from msgspec import Struct, field

Part = bytes | float | asyncio.Event

HEALTHY = {"status": "ok"}
PROPS = {
    "default_generation_settings": {"n_ctx": 4096},
    "total_slots": 1,
    "model_path": "/models/fake.gguf",
    "chat_template": "{{ messages }}",
    "build_info": "b1-fake",
}


class Cut(Exception):
    """Ends a connection as a crash would."""


class Answer(Struct):
    """What is sent: after the head the parts in order, where a number is a pause in seconds and an event is waited for.

    `cut` drops the connection instead of ending the body. With `endless` the last part is sent again and again.
    """

    status: int = 200
    parts: Sequence[Part] = ()
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    chunked: bool = True
    cut: bool = False
    endless: bool = False


class Request(Struct, frozen=True):
    """What was asked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value


def as_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer that is one JSON value."""
    return Answer(status, [json.dumps(value).encode()], headers=headers or {})


def error(status: int, message: str, kind: str = "server_error", **more: object) -> Answer:
    """Return an error as llama.cpp puts it."""
    return as_json({"error": {"code": status, "message": message, "type": kind, **more}}, status)


def stream(*parts: Part, cut: bool = False, endless: bool = False, chunked: bool = True) -> Answer:
    """Return a stream of events."""
    return Answer(200, parts, kind="text/event-stream", cut=cut, endless=endless, chunked=chunked)


def event(value: object) -> bytes:
    """Return one event of a stream, its JSON with the characters as they are."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def delta(text: str, finish: str | None = None) -> bytes:
    """Return the event for the next piece of an answer."""
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


DONE = b"data: [DONE]\n\n"
END = delta("", "stop") + DONE


Reaction = Answer | Callable[[Request], Answer]


class FaultyServer:
    """Answers each path with its answers in order, the last one for ever; other paths with 404."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.gone = asyncio.Event()
        self._answers: dict[str, list[Reaction]] = {
            "/health": [as_json(HEALTHY)],
            "/props": [as_json(PROPS)],
            "/tokenize": [as_json({"tokens": [1, 2, 3]})],
        }
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()

    def on(self, path: str, *answers: Reaction) -> Self:
        """Set the answers for a path (none: 404), or how they are made of a request."""
        self._answers[path] = list(answers)
        return self

    def chat(self, *answers: Reaction) -> Self:
        """Set the answers to chat completions."""
        return self.on("/v1/chat/completions", *answers)

    @property
    def url(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}"

    def asked(self, path: str) -> list[Request]:
        """Return what came for a path."""
        return [request for request in self.requests if request.path == path]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read_request(reader)
            self.requests.append(request)
            answers = self._answers.get(request.path) or [error(404, "File Not Found", "not_found_error")]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            await self._send(writer, answer if isinstance(answer, Answer) else answer(request))
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        except Cut:
            writer.transport.abort()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        head = [f"HTTP/1.1 {answer.status} Said", f"Content-Type: {answer.kind}", "Connection: close"]
        head += ["Transfer-Encoding: chunked"] if answer.chunked else []
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*head, "", ""]).encode())
        async for data in _pieces(answer):
            writer.write(b"%x\r\n%b\r\n" % (len(data), data) if answer.chunked else data)
            await writer.drain()
        if answer.cut:
            raise Cut
        writer.write(b"0\r\n\r\n" if answer.chunked else b"")
        await writer.drain()


async def _pieces(answer: Answer) -> AsyncIterator[bytes]:
    last = b""
    for part in answer.parts:
        match part:
            case bytes():
                last = part
                yield part
            case asyncio.Event():
                await part.wait()
            case _:
                await asyncio.sleep(part)
    while answer.endless:
        # So that others have their turn.
        await asyncio.sleep(0)
        yield last


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
