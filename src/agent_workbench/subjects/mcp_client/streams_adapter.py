"""Streams of the SDK over the pipes of a server or over HTTP, with bounds on what a server may send."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectSendStream
from mcp import types
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_MESSAGES = 5_000
WINDOW_SECONDS = 10.0
MAX_UNASKED_BYTES = 64 * 1024 * 1024
MAX_STRAY_LINES = 1_000
MAX_REFUSED = 20
_READ_BYTES = 64 * 1024
_STDERR_CHARS = 2_000
_TOOLS_CHANGED = "notifications/tools/list_changed"
_ANSWERED = frozenset({"ping", "elicitation/create"})
"""Requests of a server that are answered; it is told of all others."""
_ANY_ID = re.compile(rb'"id"\s*:\s*(\d{1,9})\b')
SAID = "agent-workbench/said"
_HTTP_SECONDS = 30.0
_REFUSALS = 300


class BrokenBound(Exception):
    """The server exceeded a bound, so the connection is closed; `str` completes the sentence "the server …"."""


class Watch:
    """Bounds and records what a server sends between two requests of ours."""

    def __init__(self, notice: Callable[[str], None], changed: Callable[[], None]) -> None:
        self.broken = ""
        """The bound that the server exceeded, as the end of a sentence."""
        self.status = 0
        """The last HTTP status that says no, which the SDK does not pass on."""
        self._notice = notice
        self._changed = changed
        self._messages = self._bytes = self._strays = 0
        self._window = 0.0
        self._told_of_change = False
        self._refused: set[str] = set()
        self._waiting: dict[types.RequestId, None] = {}
        self.tools_changed = asyncio.Event()
        """Set when the server says that its tools are others now."""

    def asked(self) -> None:
        """Begin to count anew: a request of ours is on its way."""
        self._bytes = self.status = 0
        self._told_of_change = False

    def add_bytes(self, count: int) -> None:
        """Count bytes of the wire; raise `BrokenBound` for too many."""
        self._bytes += count
        if self._bytes > MAX_UNASKED_BYTES:
            self._end(f"sent more than {MAX_UNASKED_BYTES // 1024 // 1024} MB without an answer")

    def add_line(self, size: int) -> None:
        """Check the length of a message that may not be complete yet; raise `BrokenBound`."""
        if size > MAX_MESSAGE_BYTES:
            self._end(f"sent a message of more than {MAX_MESSAGE_BYTES // 1024 // 1024} MB")

    def add_stray(self) -> None:
        """Count a line that is no message; raise `BrokenBound` for too many."""
        self._strays += 1
        if self._strays == 1:
            self._notice("it writes lines that are no JSON-RPC to its standard output")
        if self._strays > MAX_STRAY_LINES:
            self._end(f"wrote more than {MAX_STRAY_LINES:,} lines that are no JSON-RPC to its standard output")

    def add(self, message: SessionMessage) -> SessionMessage:
        """Record a message and return it as the SDK may read it; raise `BrokenBound`."""
        now = time.monotonic()
        if now - self._window > WINDOW_SECONDS:
            self._window, self._messages = now, 0
        self._messages += 1
        if self._messages > MAX_MESSAGES:
            self._end(f"sent more than {MAX_MESSAGES:,} messages within {WINDOW_SECONDS:g} s")
        match message.message:
            case types.JSONRPCRequest(method=method) if method not in _ANSWERED:
                self._refuse(method)
            case types.JSONRPCNotification(method=method) if method == _TOOLS_CHANGED:
                self.tools_changed.set()
                if not self._told_of_change:
                    self._told_of_change = True
                    self._changed()
            case types.JSONRPCResponse(id=number, result=result):
                self._answered(number)
                _keep_tools_aside(result)
            case types.JSONRPCError() as said:
                if said.id is None:  # a request could not be read, most likely the last one
                    said.id = self._asked_by(b"")
                self._answered(said.id)
            case _:
                pass
        return message

    def add_request(self, message: SessionMessage) -> None:
        """Remember a request of ours until it is answered."""
        if isinstance(message.message, types.JSONRPCRequest):
            self._waiting[coerce_request_id(message.message.id)] = None

    def unreadable(self, line: bytes) -> SessionMessage | None:
        """Return the error that takes the place of an answer which is no JSON-RPC; None for any other line."""
        is_answer = b'"jsonrpc"' in line and (b'"result"' in line or b'"error"' in line or b'"method"' not in line)
        number = self._asked_by(line) if is_answer else None
        if number is None:
            return None
        self._answered(number)
        reason = types.ErrorData(code=types.PARSE_ERROR, message="it sent an answer that is no JSON-RPC")
        return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=number, error=reason))

    def _answered(self, number: types.RequestId | None) -> None:
        if number is not None:
            self._waiting.pop(coerce_request_id(number), None)

    def _asked_by(self, line: bytes) -> types.RequestId | None:
        """Return the request of ours that a line answers, else the last one; None if none waits."""
        named = (int(digits) for digits in _ANY_ID.findall(line))
        return next((each for each in named if each in self._waiting), next(reversed(self._waiting), None))

    def _refuse(self, method: str) -> None:
        name = "".join(each if each.isprintable() else " " for each in method[:80])
        if name not in self._refused and len(self._refused) < MAX_REFUSED:
            self._refused.add(name)
            self._notice(f"it asked for {name}, which was refused")

    def _end(self, why: str) -> None:
        self.broken = self.broken or why
        raise BrokenBound(why)


def _keep_tools_aside(result: dict[str, object]) -> None:
    """Give the SDK of each listed tool what it needs to call it, and put what the server said under its `_meta`.

    The SDK takes no tool of a list in which one is invalid, and would check results against schemas without a bound on
    time. Each tool is judged on its own later, with those of other sources.
    """
    tools = result.get("tools")
    if isinstance(tools, list):
        result["tools"] = [_callable_part(tool) for tool in tools]


def _callable_part(tool: object) -> dict[str, object]:
    said = tool if isinstance(tool, dict) else {}
    name, schema = said.get("name"), said.get("inputSchema")
    sound = isinstance(schema, dict) and schema.get("type") == "object"
    return {
        "name": name if isinstance(name, str) else "",
        "inputSchema": schema if sound else {"type": "object"},
        "_meta": {SAID: tool},
    }


@asynccontextmanager
async def pipe_streams(stdout: int, stdin: int, watch: Watch) -> AsyncIterator[TransportStreams]:
    """Open the streams over the pipes of a server, given as descriptors of its standard output and input."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_READ_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(stdout, "rb", buffering=0))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(stdin, "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    to_session, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def send() -> None:
        async with from_session:
            try:
                async for message in from_session:
                    watch.add_request(message)
                    said = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    writer.write(said.encode() + b"\n")
                    await writer.drain()
            except (OSError, RuntimeError):
                await to_session.aclose()

    async with anyio.create_task_group() as group:
        group.start_soon(_receive, reader, to_session, watch)
        group.start_soon(send)
        yield reading, writing
        group.cancel_scope.cancel()
    writer.close()


async def _receive(
    reader: asyncio.StreamReader, to_session: MemoryObjectSendStream[SessionMessage | Exception], watch: Watch
) -> None:
    line = bytearray()
    async with to_session:
        try:
            while piece := await reader.read(_READ_BYTES):
                watch.add_bytes(len(piece))
                first, *others = piece.split(b"\n")
                line += first
                for rest in others:
                    if (message := _parsed(bytes(line), watch)) is not None:
                        await to_session.send(message)
                    line = bytearray(rest)
                watch.add_line(len(line))
        except (BrokenBound, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return


def _parsed(line: bytes, watch: Watch) -> SessionMessage | None:
    """Return the message in a line, an error for an unreadable answer, None for any other line."""
    if not line.strip():
        return None
    try:
        said = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        watch.add_stray()
        return watch.unreadable(line)
    return watch.add(SessionMessage(said))


@asynccontextmanager
async def http_streams(
    url: str, headers: dict[str, str], watch: Watch, auth: httpx2.Auth | None = None
) -> AsyncIterator[TransportStreams]:
    """Open the streams to a server at `url`. The SDK follows redirects only within the address's origin."""
    timeout = httpx2.Timeout(_HTTP_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(
            headers={**headers, "Accept-Encoding": "identity"},
            transport=_BoundedTransport(watch),
            auth=auth,
            timeout=timeout,
            trust_env=False,
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as (received, writing),
    ):
        to_session, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with anyio.create_task_group() as group:
            group.start_soon(_forward, received, to_session, watch)
            yield reading, writing
            group.cancel_scope.cancel()


async def _forward(
    received: ReadStream[SessionMessage | Exception],
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    watch: Watch,
) -> None:
    async with to_session:
        try:
            async for message in received:
                await to_session.send(watch.add(message) if isinstance(message, SessionMessage) else message)
        except (BrokenBound, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """HTTP whose responses are counted: the SDK reads those of JSON to their end."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        with suppress(ValidationError, httpx2.RequestNotRead):
            self._watch.add_request(SessionMessage(types.jsonrpc_message_adapter.validate_json(request.content)))
        response = await super().handle_async_request(request)
        if response.status_code >= _REFUSALS:
            self._watch.status = response.status_code
        whole = not response.headers.get("content-type", "").startswith("text/event-stream")
        stream = cast("httpx2.AsyncByteStream", response.stream)
        response.stream = _CountedStream(stream, self._watch, whole=whole)
        return response


class _CountedStream(httpx2.AsyncByteStream):
    """Body of a response; `whole`: it is one message."""

    def __init__(self, inner: httpx2.AsyncByteStream, watch: Watch, *, whole: bool) -> None:
        self._inner = inner
        self._watch = watch
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            self._watch.add_bytes(len(piece))
            if self._whole:
                self._watch.add_line(size)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class ErrorTail:
    """The end of what a server writes to its standard error."""

    def __init__(self) -> None:
        self._text = bytearray()

    async def read(self, descriptor: int) -> None:
        """Read until the server closes the pipe."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_READ_BYTES)
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
        )
        while piece := await reader.read(_READ_BYTES):
            self._text += piece
            del self._text[:-_STDERR_CHARS]

    @property
    def last_lines(self) -> str:
        """The last lines on one, empty if there are none."""
        lines = [line.strip() for line in self._text.decode("utf-8", "replace").splitlines() if line.strip()]
        return " · ".join(lines[-3:])
