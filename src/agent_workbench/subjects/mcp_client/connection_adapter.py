"""Connection with one server: the server's process, and the client process that speaks with it."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import NoReturn

import msgspec

from agent_workbench.core.errors import ToolError
from agent_workbench.core.ports.tools import (
    QuestionAnswer,
    ServerCommand,
    ServerProcess,
    ServerProcesses,
    StandardStreams,
)
from agent_workbench.subjects.mcp_client.messages_adapter import (
    MAX_ANSWER_BYTES,
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
from agent_workbench.system.programs import child_environment, start_module

CLIENT = "agent_workbench.subjects.mcp_client.process_adapter"
NO_ADVICE = "`agent mcp test` shows what it answers"
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_CANCEL_SECONDS = 3.0


class SignInNeeded(ToolError):
    """The server wants a person to sign in."""


class Target(msgspec.Struct, frozen=True):
    """The server to connect with: a `command` to start, or an address with its headers.

    `sign_in` and `anew`: see `Connect`.
    """

    command: ServerCommand | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    sign_in: str = ""
    anew: bool = False


class Connection:
    """A connected server. `on_notice` gets what the server does unasked; it may be replaced."""

    def __init__(
        self, client: asyncio.subprocess.Process, server: ServerProcess | None, on_notice: Callable[[Noticed], None]
    ) -> None:
        self.on_notice = on_notice
        self.connected: Connected | None = None
        self._client = client
        self._server = server
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._last_id = 0
        self._reason = ""
        self._settled = asyncio.Event()
        self._settled.set()
        self._decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
        self._to_client, self._from_client = _streams_of(client)
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(
        cls,
        target: Target,
        servers: ServerProcesses,
        environ: Mapping[str, str],
        on_notice: Callable[[Noticed], None],
    ) -> "Connection":
        """Start the server and its client, and wait until they agree on a protocol; raise `ToolError`."""
        with contextlib.ExitStack() as pipes:
            server: ServerProcess | None = None
            ends: tuple[int, ...] = ()
            if target.command is not None:
                theirs, ends = _pipes(pipes)
                server = await servers.start(target.command, theirs)
            try:
                client = await _start_client(ends, environ)
            except BaseException:
                if server is not None:
                    await server.stop()
                raise
        connection = cls(client, server, on_notice)
        try:
            connection.connected = await connection._connect(
                Connect(target.url, dict(target.headers), target.sign_in, target.anew)
            )
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def usable(self) -> bool:
        """True as long as both processes run."""
        ended = self._server is not None and self._server.returncode is not None
        return not (self._reading.done() or ended or self._reason)

    async def is_settled(self) -> bool:
        """Return False if the client process did not stop a cancelled request in time."""
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

    async def list_tools(self) -> Listed:
        """Return the tools; raise `ToolError`."""
        answer = await self._ask(ListTools)
        return answer if isinstance(answer, Listed) else _nonsense()

    async def call(self, tool: str, arguments: str) -> Called | Asked:
        """Return the result of a call, or its first question; raise `ToolError`.

        Cancelling it stops the call at the server.
        """
        answer = await self._ask(lambda number: CallTool(number, tool, arguments))
        return answer if isinstance(answer, Called | Asked) else _nonsense()

    async def reply(self, asked: Asked, action: QuestionAnswer, content: str) -> Called | Asked:
        """Return the result of a call after the answer to its question, or the next one; raise `ToolError`."""
        answer = await self._ask(lambda number: Reply(number, asked.call, action.value, content))
        return answer if isinstance(answer, Called | Asked) else _nonsense()

    def drop(self, asked: Asked) -> None:
        """Stop a call whose question nobody answers."""
        self._send(Cancel(asked.call))

    async def _connect(self, request: Connect) -> Connected:
        answer = await self._ask(lambda _: request)
        return answer if isinstance(answer, Connected) else _nonsense()

    async def _ask(self, request: Callable[[int], Request]) -> Answer:
        """Return the answer to a request that gets the number it is called with; raise `ToolError`."""
        self._last_id += 1
        number = self._last_id
        made = request(number)
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[0 if isinstance(made, Connect) else number] = answered
        self._send(made)
        try:
            answer = await answered
        except asyncio.CancelledError:
            self._settled.clear()
            self._send(Cancel(number))
            raise
        if isinstance(answer, Failed):
            error = SignInNeeded if answer.unsigned else ToolError
            raise error(await self._explained(answer.reason), advice=NO_ADVICE)
        return answer

    async def close(self) -> None:
        """End both processes."""
        self._reading.cancel()
        if self._client.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._client.kill()
        await self._client.wait()
        if self._server is not None:
            await self._server.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._end("the connection was closed")

    def _send(self, request: Request) -> None:
        if not self._to_client.is_closing():
            self._to_client.write(msgspec.json.encode(request) + b"\n")

    async def _read(self) -> None:
        try:
            while line := await self._from_client.readline():
                self._take(self._decoder.decode(line))
        except (
            msgspec.MsgspecError,
            ValueError,
            OSError,
        ):  # a line that is too long, or no answer: the client process is broken
            pass
        self._end(self._reason or "its client process ended: what it sent took too much memory")

    def _take(self, answer: Answer) -> None:
        match answer:
            case Noticed():
                self.on_notice(answer)
                return
            case Failed(id=0):
                self._reason = answer.reason
                for number in tuple(self._waiting):
                    self._resolve(number, answer)
                return
            case Connected():
                self._resolve(0, answer)
            case _:
                self._resolve(answer.id, answer)

    def _resolve(self, number: int, answer: Answer) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return
        if waiting.cancelled():
            self._settled.set()
        elif not waiting.done():
            waiting.set_result(answer)

    def _end(self, reason: str) -> None:
        for number in tuple(self._waiting):
            self._resolve(number, Failed(number, reason))

    async def _explained(self, reason: str) -> str:
        """Return the reason with the server's exit code if it has ended, or is about to."""
        if self._server is None or reason.startswith("it "):
            return reason
        for _ in range(20):
            if self._server.returncode is not None:
                code = self._server.returncode
                return f"the server ended with {f'signal {-code}' if code < 0 else f'exit code {code}'} ({reason})"
            await asyncio.sleep(0.01)
        return reason


def _streams_of(client: asyncio.subprocess.Process) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
    if client.stdin is None or client.stdout is None:
        raise ToolError("the client process has no pipes")
    return client.stdin, client.stdout


def _nonsense() -> NoReturn:
    raise ToolError("the client process gave another answer than asked for", advice=NO_ADVICE)


def _pipes(kept: contextlib.ExitStack) -> tuple[StandardStreams, tuple[int, ...]]:
    """Return the server's ends of three pipes, and the client's: standard output, input and error of the server."""
    stdin, to_stdin = os.pipe()
    from_stdout, stdout = os.pipe()
    from_stderr, stderr = os.pipe()
    for each in (stdin, to_stdin, from_stdout, stdout, from_stderr, stderr):
        kept.callback(os.close, each)
    return StandardStreams(stdin, stdout, stderr), (from_stdout, to_stdin, from_stderr)


async def _start_client(ends: tuple[int, ...], environ: Mapping[str, str]) -> asyncio.subprocess.Process:
    certificates = {name: environ[name] for name in _CERTIFICATES if name in environ}
    environment = {**child_environment(environ), **certificates}
    try:
        return await start_module(CLIENT, environment, descriptors=ends, limit=MAX_ANSWER_BYTES + 1)
    except OSError as error:
        raise ToolError(f"the client process could not be started: {error}") from error
