"""Connection with one language server: its process, and the client process that speaks with it."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from agent_workbench.core.checks.language_servers import Diagnostic
from agent_workbench.core.errors import ToolError
from agent_workbench.core.ports.tools import ServerProcess, StandardStreams
from agent_workbench.system.programs import child_environment, start_module

CLIENT = "agent_workbench.adapters.language_client"
MAX_ANSWER_BYTES = 4 * 1024 * 1024
StartServer = Callable[[StandardStreams], Awaitable[ServerProcess]]


class Connect(msgspec.Struct, frozen=True, tag=True):
    """The server's name in our settings, the folder that it works in, and the languages by suffix."""

    server: str
    root: str
    languages: Mapping[str, str]


class Ask(msgspec.Struct, frozen=True, tag=True):
    """A question for the diagnostics of files with these texts, which need not be those on the disk."""

    id: int
    texts: Mapping[str, str]


class Found(msgspec.Struct, frozen=True, tag=True):
    """The answer to a question."""

    id: int
    diagnostics: tuple[Diagnostic, ...]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The server cannot be used any more; `reason` completes the sentence "it …"."""

    reason: str


Request = Connect | Ask
Answer = Found | Failed


class Connection:
    """A language server with its client process. An error is final: it is not used again."""

    def __init__(self, client: asyncio.subprocess.Process, server: ServerProcess) -> None:
        self._client = client
        self._server = server
        self._last_id = 0
        self._asking = asyncio.Lock()
        self._decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

    @classmethod
    async def open(cls, connect: Connect, start: StartServer, environ: Mapping[str, str]) -> "Connection":
        """Start the server and its client; raise `WorkbenchError`. Neither has said anything yet."""
        with contextlib.ExitStack() as pipes:
            stdin, to_stdin = _pipe(pipes)
            from_stdout, stdout = _pipe(pipes)
            server = await start(StandardStreams(stdin, stdout))
            try:
                client = await _start_client((from_stdout, to_stdin), environ)
            except BaseException:
                await server.stop()
                raise
        connection = cls(client, server)
        connection._send(connect)
        return connection

    async def ask(self, texts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of files with these texts; raise `ToolError` if the server cannot be used.

        A cancelled question is answered all the same, and its answer passed over.
        """
        self._last_id += 1
        number = self._last_id
        self._send(Ask(number, texts))
        async with self._asking:
            while True:
                answer = await self._receive()
                if isinstance(answer, Failed):
                    raise ToolError(f"it {answer.reason}")
                if answer.id == number:
                    return answer.diagnostics

    async def close(self) -> None:
        """End both processes."""
        if self._client.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._client.kill()
        await self._client.wait()
        await self._server.stop()

    def _send(self, request: Request) -> None:
        if self._client.stdin is not None and not self._client.stdin.is_closing():
            self._client.stdin.write(msgspec.json.encode(request) + b"\n")

    async def _receive(self) -> Answer:
        if self._client.stdout is None:
            raise ToolError("its client has no pipe")
        try:
            line = await self._client.stdout.readline()
            return self._decoder.decode(line) if line else Failed("made its client end")
        except (msgspec.MsgspecError, ValueError, OSError):
            return Failed("made its client fail")


def _pipe(kept: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for each in ends:
        kept.callback(os.close, each)
    return ends


async def _start_client(ends: tuple[int, ...], environ: Mapping[str, str]) -> asyncio.subprocess.Process:
    try:
        return await start_module(CLIENT, child_environment(environ), descriptors=ends, limit=MAX_ANSWER_BYTES + 1)
    except OSError as error:
        raise ToolError(f"its client could not be started: {error}") from error
