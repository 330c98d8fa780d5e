"""The client of one server: `python -m agent_workbench.adapters.mcp.client_process [STDOUT STDIN STDERR]`.

It speaks with the workbench in lines of JSON (`messages`) on its standard input and output, and with the server through
the official SDK: over the three descriptors of its command line, or over HTTP. A server may send what costs the SDK
time and memory, so this is a process of its own: it limits its memory, and ends with the workbench. What a tool returns
is made inert, bounded text.
"""

import asyncio
import ctypes
import json
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec
from mcp import Client
from mcp.client._transport import TransportStreams
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, Implementation, InputRequiredResult
from pydantic import ValidationError

from agent_workbench.adapters.mcp.bounded_streams import SAID, ErrorTail, Watch, http_streams, pipe_streams
from agent_workbench.adapters.mcp.messages import (
    MAX_ANSWER_BYTES,
    MAX_LISTED,
    MAX_TEXT_CHARS,
    Answer,
    Called,
    CallTool,
    Cancel,
    Connect,
    Connected,
    Failed,
    Listed,
    ListedTool,
    ListTools,
    Noticed,
    Request,
)
from agent_workbench.core.text.sanitizer import sanitize_whole, without_chat_markers
from agent_workbench.core.version import __version__

MEMORY_BYTES = 1_500_000_000
MAX_PAGES = 50
MAX_NOTICES = 100
MAX_REASON_CHARS = 1_000
LATE_SECONDS = 3.0
"""Wait for the tools of a server that lists none yet; all sources together have ten seconds."""
_PR_SET_PDEATHSIG = 1
_STDERR_SECONDS = 0.02


def main(arguments: list[str]) -> int:
    """Serve the workbench until it closes the pipe; return 0."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    asyncio.run(_serve(tuple(map(int, arguments))))
    return 0


async def _serve(pipes: tuple[int, ...]) -> None:
    wire = await Wire.open()
    first = await wire.receive()
    if not isinstance(first, Connect):
        return
    watch, errors = Watch(wire.notice, lambda: wire.send(Noticed(tools_changed=True))), ErrorTail()
    try:
        # No callbacks: requests for sampling, elicitation and roots are refused by the SDK. No cache: lists are asked.
        client = Client(
            _streams(first, pipes, watch, errors),
            client_info=Implementation(name="agent-workbench", version=__version__),
            cache=None,
        )
        async with client:
            served = client.server_info
            name = f"{served.name} {served.version}" if served is not None else "a server without a name"
            wire.send(Connected(short(name), client.protocol_version))
            await _Requests(client, wire, watch, errors).answer_all()
    except Exception as error:
        # Errors of many libraries come through the SDK: each means that the connection is gone.
        wire.send(Failed(0, describe(error, watch, errors.last_lines)))


@asynccontextmanager
async def _streams(
    connect: Connect, pipes: tuple[int, ...], watch: Watch, errors: ErrorTail
) -> AsyncIterator[TransportStreams]:
    async with AsyncExitStack() as stack:
        if connect.url:
            yield await stack.enter_async_context(http_streams(connect.url, connect.headers, watch))
            return
        stdout, stdin, stderr = pipes
        reading = asyncio.create_task(errors.read(stderr))
        stack.callback(reading.cancel)
        yield await stack.enter_async_context(pipe_streams(stdout, stdin, watch))


def describe(error: BaseException, watch: Watch, stderr: str) -> str:
    """Return why a request or the connection failed; a bound that the server exceeded explains everything else."""
    broken = watch.broken
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MemoryError):
        broken = broken or "sent something that takes too much memory"
    if isinstance(error, ValidationError):
        where = error.errors(include_url=False)[0]
        said = f"it sent an answer of another form: {'.'.join(map(str, where['loc']))}: {where['msg']}"
        broken = broken or short(said).removeprefix("it ")
    said = f"it {broken}" if broken else short(str(error).strip() or type(error).__name__)
    said = f"{said} (HTTP status {watch.status})" if watch.status else said
    return f"{said}; the end of its standard error: {short(stderr)}" if stderr else said


def short(text: str) -> str:
    """Return a text of the server on one line, without control characters and not long."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= MAX_REASON_CHARS else f"{line[: MAX_REASON_CHARS - 1]}…"


class Wire:
    """The pipes to the workbench. Nothing else in this process reads from or writes to them."""

    def __init__(self, reader: asyncio.StreamReader, out: int) -> None:
        self._reader = reader
        self._out = out
        self._notices = 0
        self._decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)

    @classmethod
    async def open(cls) -> "Wire":
        """Take standard input and output, and leave the null device in their place."""
        incoming, out = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        for taken in (0, 1):
            os.dup2(nothing, taken)
        os.close(nothing)
        reader = asyncio.StreamReader(limit=MAX_ANSWER_BYTES)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", buffering=0)
        )
        return cls(reader, out)

    async def receive(self) -> Request | None:
        """Return the next request, None at the end."""
        line = await self._reader.readline()
        return self._decoder.decode(line) if line else None

    def send(self, answer: Answer) -> None:
        """Write an answer; the workbench always reads, so this does not wait long."""
        data = msgspec.json.encode(answer) + b"\n"
        if len(data) > MAX_ANSWER_BYTES and isinstance(answer, Listed | Called):
            data = msgspec.json.encode(Failed(answer.id, "its answer is too long")) + b"\n"
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._out, data) :]

    def notice(self, text: str) -> None:
        """Tell what the server did unasked; only the first notices are sent."""
        self._notices += 1
        if self._notices <= MAX_NOTICES:
            self.send(Noticed(text))


class _Requests:
    """Requests of the workbench, each answered in a task of its own so that it can be cancelled."""

    def __init__(self, client: Client, wire: Wire, watch: Watch, errors: ErrorTail) -> None:
        self._client = client
        self._wire = wire
        self._watch = watch
        self._errors = errors
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._waited = False

    async def answer_all(self) -> None:
        """Answer until the workbench closes the pipe."""
        listening = asyncio.create_task(self._listen())
        try:
            while (request := await self._wire.receive()) is not None:
                match request:
                    case Cancel(id=number):
                        if number in self._tasks:
                            self._tasks[number].cancel()
                    case ListTools() | CallTool():
                        self._tasks[request.id] = asyncio.create_task(self._answer(request))
                    case Connect():
                        break
        finally:
            for task in (listening, *self._tasks.values()):
                task.cancel()

    async def _answer(self, request: ListTools | CallTool) -> None:
        self._watch.asked()
        try:
            answer = await (self._list(request) if isinstance(request, ListTools) else self._call(request))
        except asyncio.CancelledError:
            answer = Failed(request.id, "it was stopped")
        except Exception as error:
            await asyncio.sleep(_STDERR_SECONDS)  # the reason of an end is written before it, and read beside it
            answer = Failed(request.id, describe(error, self._watch, self._errors.last_lines))
            if self._watch.broken or (isinstance(error, MCPError) and error.code == CONNECTION_CLOSED):
                self._wire.send(Failed(0, answer.reason))
        finally:
            self._tasks.pop(request.id, None)
        self._wire.send(answer)

    async def _list(self, request: ListTools) -> Answer:
        changed = self._watch.tools_changed
        changed.clear()
        tools, more = await self._pages()
        capabilities = self._client.server_capabilities
        if not tools and not self._waited and capabilities.tools and capabilities.tools.list_changed:
            # Some servers answer before they have read their tools, and say so when they have.
            self._waited = True
            with suppress(TimeoutError):
                async with asyncio.timeout(LATE_SECONDS):
                    await changed.wait()
                tools, more = await self._pages()
        return Listed(request.id, listed_tools(tools[:MAX_LISTED]), more or len(tools) > MAX_LISTED)

    async def _pages(self) -> tuple[list[object], bool]:
        """Return the tools as the server describes them, and True if it has more."""
        tools: list[object] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            tools += [(tool.meta or {}).get(SAID) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None or len(tools) >= MAX_LISTED:
                break
        return tools, cursor is not None

    async def _call(self, request: CallTool) -> Answer:
        result = await self._client.session.call_tool(
            request.tool, json.loads(request.arguments), allow_input_required=True
        )
        if isinstance(result, InputRequiredResult):
            asked = ", ".join(each.method for each in (result.input_requests or {}).values()) or "more input"
            self._wire.notice(f"it asked for {short(asked)}, which was refused")
            return Failed(request.id, f"it asks for {short(asked)} before it answers, which it does not get")
        return called(request.id, result.model_dump(by_alias=True, mode="json", exclude_none=True))

    async def _listen(self) -> None:
        """Have a server of the newest protocol tell when its tools change; older ones do so unasked."""
        with suppress(Exception):  # it is a hint only: tools are listed again for each task
            async with self._client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    pass


MAX_BLOCKS = 1_000
_HINTS = {
    "readOnlyHint": ("read-only", "changes things"),
    "destructiveHint": ("destructive", "not destructive"),
    "idempotentHint": ("repeatable", "not repeatable"),
    "openWorldHint": ("reaches other systems", "reaches no other system"),
}
_MAX_TITLE_CHARS = 100
_WORDS = {"title", "description"}
_VALUES = {"const", "enum", "default", "examples"}


def called(number: int, result: Mapping[str, object]) -> Called:
    """Return a result of `tools/call` as a message; `result` is what the server sent, already validated."""
    content = result.get("content")
    blocks: list[object] = content if isinstance(content, list) else []
    texts = list(_texts(blocks))
    structured = result.get("structuredContent")
    if structured is not None and not any(map(_is_text, blocks)):
        texts.append(json.dumps(structured, ensure_ascii=False))
    text = "\n".join(texts).encode("utf-8", "replace").decode()
    kept = text[:MAX_TEXT_CHARS]
    return Called(number, inert(kept), result.get("isError") is True, len(text[MAX_TEXT_CHARS:].encode()))


def inert(text: str) -> str:
    """Return text with visible control characters, and without markers that a model's server could obey."""
    return without_chat_markers(sanitize_whole(text))


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _texts(blocks: list[object]) -> Iterator[str]:
    for block in blocks[:MAX_BLOCKS]:
        if isinstance(block, dict):
            yield _text(block)
    if len(blocks) > MAX_BLOCKS:
        yield f"[{len(blocks) - MAX_BLOCKS} more parts were left out]"


def _text(block: Mapping[str, object]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in {"image", "audio"}:
        # Base64 has four characters for three bytes.
        size = len(str(block.get("data", ""))) * 3 // 4
        return f"[{kind} {_word(block.get('mimeType'))}, {size:,} bytes, left out]"
    if kind == "resource_link":
        return f"[link to the resource {_word(block.get('uri'))}, not read]"
    resource = block.get("resource")
    if kind == "resource" and isinstance(resource, dict):
        size = len(str(resource["text"]).encode("utf-8", "replace")) if "text" in resource else 0
        size = size or len(str(resource.get("blob", ""))) * 3 // 4
        return f"[resource {_word(resource.get('uri'))} {_word(resource.get('mimeType'))}, {size:,} bytes, left out]"
    return f"[a part of the type {_word(kind)}, left out]"


def _word(value: object) -> str:
    text = without_chat_markers(
        "".join(each if each.isprintable() else " " for each in str(value or "unknown"))
    ).strip()
    return text if len(text) <= 200 else f"{text[:199]}…"


def listed_tools(tools: Iterable[object]) -> tuple[ListedTool, ...]:
    """Return the tools of `tools/list`; a description that is missing is the title, else the name.

    What a server says of a tool may have any form: a name that is no text is empty, as is a schema that is missing.
    """
    return tuple(_listed(tool) for tool in tools)


def _listed(said: object) -> ListedTool:
    tool: Mapping[str, object] = said if isinstance(said, dict) else {}
    name = _string(tool.get("name"))
    annotations = tool.get("annotations")
    marks = annotations if isinstance(annotations, dict) else {}
    title = _word(tool.get("title") or marks.get("title") or "")[:_MAX_TITLE_CHARS]
    hints = [words[0] if marks[key] else words[1] for key, words in _HINTS.items() if isinstance(marks.get(key), bool)]
    if title and title != "unknown":
        hints.append(f"titled {title}")
    summary = _string(tool.get("description")).strip() or f"the tool {name} (it has no description)"
    there = "inputSchema" in tool
    schema = json.dumps(_described(tool["inputSchema"]), ensure_ascii=False, separators=(",", ":")) if there else ""
    # Half characters cannot be encoded.
    name, schema = (text.encode("utf-8", "replace").decode() for text in (name, schema))
    return ListedTool(name, inert(summary.encode("utf-8", "replace").decode()), schema, tuple(hints))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _described(schema: object) -> object:
    """Return a schema whose titles and descriptions are inert; its values stay as they are."""
    if isinstance(schema, list):
        return [_described(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inert(value)
        if key in _WORDS and isinstance(value, str)
        else value
        if key in _VALUES
        else _described(value)
        for key, value in schema.items()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
