"""Client of one server: `python -m agent_workbench.subjects.mcp_client.process_adapter [STDOUT STDIN STDERR]`.

It speaks with the workbench in lines of JSON (`messages`) on its standard input and output, and with the server through
the official SDK: over the three descriptors of its command line, or over HTTP. A server may send what costs the SDK
time and memory, so this is a process of its own: it limits its memory, and ends with the workbench.
"""

import asyncio
import ctypes
import json
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec
from mcp import Client
from mcp.client._transport import TransportStreams
from mcp.client.auth import OAuthClientProvider
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, URL_ELICITATION_REQUIRED, CallToolResult, Implementation
from pydantic import ValidationError

from agent_workbench.core.version import __version__
from agent_workbench.subjects.mcp_client.elicitation_adapter import Elicitation, OpenCall, required_pages
from agent_workbench.subjects.mcp_client.messages_adapter import (
    MAX_ANSWER_BYTES,
    MAX_LISTED,
    Answer,
    Asked,
    Called,
    CallTool,
    Cancel,
    Connect,
    Connected,
    Failed,
    Listed,
    ListTools,
    Noticed,
    Reply,
    Request,
)
from agent_workbench.subjects.mcp_client.results_adapter import called, listed_tools
from agent_workbench.subjects.mcp_client.sign_in_adapter import (
    Redirect,
    SignedIn,
    SignInFile,
    new_sign_in,
    secrets_of,
    wants_sign_in,
)
from agent_workbench.subjects.mcp_client.streams_adapter import (
    SAID,
    ErrorTail,
    Watch,
    http_streams,
    pipe_streams,
)

MEMORY_BYTES = 1_500_000_000
MAX_PAGES = 50
MAX_NOTICES = 100
MAX_REASON_CHARS = 1_000
LATE_SECONDS = 3.0
"""Wait for the tools of a server that lists none yet; all sources together have ten seconds."""
_PR_SET_PDEATHSIG = 1
_STDERR_SECONDS = 0.02
_SHORTEST_SECRET = 8


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
    elicitation = Elicitation(wire.notice)
    try:
        async with _authentication(first, wire) as wire.provider:
            # No other callbacks: requests for sampling and roots are refused by the SDK. No cache: lists are asked.
            client = Client(
                _streams(first, pipes, watch, errors, wire.provider),
                client_info=Implementation(name="agent-workbench", version=__version__),
                elicitation_callback=elicitation.ask,
                cache=None,
            )
            async with client:
                served = client.server_info
                name = f"{served.name} {served.version}" if served is not None else "a server without a name"
                wire.send(Connected(short(name), client.protocol_version))
                await _Requests(client, wire, watch, errors, elicitation, first.headers).answer_all()
    except Exception as error:
        # Errors of many libraries come through the SDK: each means that the connection is gone.
        reason = describe(error, watch, errors.last_lines)
        wire.send(Failed(0, reason, wants_sign_in(watch.status, first.headers)))


@asynccontextmanager
async def _authentication(connect: Connect, wire: "Wire") -> AsyncIterator[OAuthClientProvider | None]:
    """Open what signs the requests to an address: kept tokens, a new sign-in, or nothing."""
    file = SignInFile(connect.sign_in)
    if connect.anew:
        redirect = await Redirect.open()
        try:
            yield new_sign_in(connect.url, file, redirect, lambda page: wire.send(Noticed(visit=page)))
        finally:
            await redirect.close()
        return
    found = file.read(connect.url) if connect.sign_in else None
    yield SignedIn(connect.url, file, found) if found is not None else None


@asynccontextmanager
async def _streams(
    connect: Connect, pipes: tuple[int, ...], watch: Watch, errors: ErrorTail, provider: OAuthClientProvider | None
) -> AsyncIterator[TransportStreams]:
    async with AsyncExitStack() as stack:
        if connect.url:
            yield await stack.enter_async_context(http_streams(connect.url, connect.headers, watch, provider))
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
    if isinstance(error, MCPError) and error.code == URL_ELICITATION_REQUIRED:
        pages = ", ".join(required_pages(error.error.data)) or "a page"
        said = f"{said}; before the next call the user has to open {pages}"
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
        self.provider: OAuthClientProvider | None = None
        """Its secrets leave this process in no message."""
        self._secrets: set[bytes] = set()
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
        data = self._without_secrets(msgspec.json.encode(answer)) + b"\n"
        if len(data) > MAX_ANSWER_BYTES and isinstance(answer, Listed | Called):
            data = msgspec.json.encode(Failed(answer.id, "its answer is too long")) + b"\n"
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._out, data) :]

    def _without_secrets(self, data: bytes) -> bytes:
        # Every message is JSON, and often has the JSON of a tool within: quotes and backslashes are escaped.
        for secret in secrets_of(self.provider):
            if len(secret) >= _SHORTEST_SECRET:
                escaped = msgspec.json.encode(secret)[1:-1]
                self._secrets |= {escaped, msgspec.json.encode(escaped.decode())[1:-1]}
        for spelled in sorted(self._secrets, key=len, reverse=True):
            data = data.replace(spelled, "«redacted:sign-in»".encode())
        return data

    def notice(self, text: str) -> None:
        """Tell what the server did unasked; only the first notices are sent."""
        self._notices += 1
        if self._notices <= MAX_NOTICES:
            self.send(Noticed(text))


class _Requests:
    """Requests of the workbench, each answered in a task of its own so that it can be cancelled."""

    def __init__(
        self,
        client: Client,
        wire: Wire,
        watch: Watch,
        errors: ErrorTail,
        elicitation: Elicitation,
        headers: dict[str, str],
    ) -> None:
        self._calls = elicitation.calls
        self._headers = headers
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
                        elif number in self._calls:
                            self._calls.pop(number).running.cancel()
                    case ListTools() | CallTool() | Reply():
                        self._tasks[request.id] = asyncio.create_task(self._answer(request))
                    case Connect():
                        break
        finally:
            for task in (listening, *self._tasks.values(), *(call.running for call in self._calls.values())):
                task.cancel()

    async def _answer(self, request: ListTools | CallTool | Reply) -> None:
        self._watch.asked()
        try:
            answer = await self._answer_to(request)
        except asyncio.CancelledError:
            answer = Failed(request.id, "it was stopped")
        except Exception as error:
            await asyncio.sleep(_STDERR_SECONDS)  # the reason of an end is written before it, and read beside it
            answer = Failed(request.id, describe(error, self._watch, self._errors.last_lines))
            if wants_sign_in(self._watch.status, self._headers):
                answer = msgspec.structs.replace(answer, unsigned=True)
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

    async def _answer_to(self, request: ListTools | CallTool | Reply) -> Answer:
        match request:
            case ListTools():
                return await self._list(request)
            case CallTool():
                arguments = json.loads(request.arguments)
                running = asyncio.create_task(self._client.call_tool(request.tool, arguments))
                call = self._calls[request.id] = OpenCall(request.id, running)
                return await self._next(call, request.id)
            case Reply():
                open_call = self._calls.get(request.call)
                if open_call is None:
                    return Failed(request.id, "it no longer waits for an answer")
                open_call.answer(request)
                return await self._next(open_call, request.id)

    async def _next(self, call: OpenCall, number: int) -> Asked | Called:
        """Return the next question of a call, or its result."""
        question = None
        try:
            if (question := await call.next()) is not None:
                return msgspec.structs.replace(question, id=number)
            result: CallToolResult = await call.running
        finally:
            if question is None:
                self._calls.pop(call.id, None)
        return called(number, result.model_dump(by_alias=True, mode="json", exclude_none=True))

    async def _listen(self) -> None:
        """Have a server of the newest protocol tell when its tools change; older ones do so unasked."""
        with suppress(Exception):  # it is a hint only: tools are listed again for each task
            async with self._client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
