"""The client at the other end: its messages within bounds, the updates that it is shown, and the questions."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any, TypeGuard, TypeVar

from acp import RequestError
from acp import schema as wire
from msgspec import Struct
from pydantic import ValidationError

from agent_workbench.acp.tool_calls import text_content
from agent_workbench.core.proposals import ACP
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, read_bounded_json
from agent_workbench.server_process import MAX_HEAD_CHARS, MAX_MESSAGE_CHARS, bounded_line

if TYPE_CHECKING:
    from acp.agent.connection import AgentSideConnection


Update = (
    wire.UserMessageChunk
    | wire.AgentMessageChunk
    | wire.AgentThoughtChunk
    | wire.ToolCallStart
    | wire.ToolCallProgress
    | wire.AgentPlanUpdate
    | wire.AvailableCommandsUpdate
    | wire.CurrentModeUpdate
    | wire.ConfigOptionUpdate
    | wire.SessionInfoUpdate
)
MAX_NAME_CHARS = 40
MAX_READ_CHARS = 1_000_000
READ_SECONDS = 10.0
UNKNOWN_CLIENT = "unknown client"
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_log = logging.getLogger(__name__)

Message = dict[str, Any]  # as the SDK spells it
MAX_REQUESTS = 64
"""Requests of the client without a written answer; each prompt is one for as long as it is worked on."""
PERMISSION = "session/request_permission"
CANCEL = "session/cancel"
PARSE_ERROR, INVALID_REQUEST, BUSY = -32700, -32600, -32000
NO_MESSAGE = "that is no message of JSON-RPC 2.0"
Result = TypeVar("Result")
_ID = re.compile(r'"id"\s*:\s*(?:(\d{1,15})|"([^"\\]{1,100})")\s*[,}]')


class Editor:
    """The client of one connection; `person` is the `by` of the decisions that it reports."""

    def __init__(self, pipe: "ClientPipe") -> None:
        self._pipe = pipe
        self._connection: AgentSideConnection | None = None
        self.person = decider_name(UNKNOWN_CLIENT)
        self.reads_files = False
        """True if the client gives the text of its files, unsaved changes included."""

    def connected(self, connection: "AgentSideConnection") -> None:
        """Talk through this connection from now on."""
        self._connection = connection

    async def show(self, session: str, *updates: Update) -> None:
        """Send updates of a thread; raises `ConnectionError` when the client is gone."""
        if self._connection is None:
            raise AssertionError("nothing is shown before there is a connection")
        for update in updates:
            await self._connection.session_update(session, update)

    async def read(self, session: str, path: str) -> str | None:
        """Return the text that the editor has of a file; None if it gives none, or one that is too long."""
        if self._connection is None or not self.reads_files:
            return None
        try:
            async with asyncio.timeout(READ_SECONDS):
                response = await self._connection.read_text_file(session_id=session, path=path)
        except (RequestError, ValidationError, TimeoutError) as error:
            _log.warning("the client gave no text of a file: %s", error)
            return None
        return response.content if len(response.content) <= MAX_READ_CHARS else None

    async def say(self, session: str, text: str) -> None:
        """Say something to the user in a thread; `text` is Markdown."""
        await self.show(session, message(f"{text}\n\n"))

    async def ask(
        self, session: str, call: wire.ToolCallUpdate, options: Sequence[wire.PermissionOption]
    ) -> str | None:
        """Return the id of the option that the user chose, None if they chose none, or the client cannot ask.

        A question that is cancelled here is withdrawn there.
        """
        if self._connection is None:
            raise AssertionError("nothing is asked before there is a connection")
        answered = False
        try:
            response = await self._connection.request_permission(session, call, list(options))
            answered = True
        except (RequestError, ValidationError) as error:
            answered = True
            _log.warning("the client gave no answer to a question: %s", error)
            return None
        finally:
            if not answered:
                await self._pipe.withdraw(session, call.tool_call_id)
        if not isinstance(response.outcome, wire.AllowedOutcome):
            return None
        if all(response.outcome.option_id != each.option_id for each in options):
            _log.warning("the client chose an option that was not offered: %s", quoted(response.outcome.option_id))
            return None
        return response.outcome.option_id


def decider_name(name: str | None) -> str:
    """Return the `by` of the decisions that a client of this name reports; a foreign name is cut and made plain."""
    plain = _STRANGE.sub(" ", (name or "")[: 4 * MAX_NAME_CHARS]).strip()[:MAX_NAME_CHARS].strip()
    return f"{ACP}{plain or UNKNOWN_CLIENT}"


def message(text: str) -> wire.AgentMessageChunk:
    """Return a piece of a message of the agent."""
    return wire.AgentMessageChunk(session_update="agent_message_chunk", content=_text(text))


def thought(text: str) -> wire.AgentThoughtChunk:
    """Return a piece of the agent's thoughts."""
    return wire.AgentThoughtChunk(session_update="agent_thought_chunk", content=_text(text))


def user_message(text: str) -> wire.UserMessageChunk:
    """Return a message of the user, for the history."""
    return wire.UserMessageChunk(session_update="user_message_chunk", content=_text(text))


def question(name: str, title: str, text: str) -> wire.ToolCallUpdate:
    """Return the tool call of a question that is about no proposal."""
    return wire.ToolCallUpdate(
        tool_call_id=name, kind="other", status="pending", title=title, content=[text_content(text)]
    )


def _text(text: str) -> wire.TextContentBlock:
    return wire.TextContentBlock(type="text", text=text)


class _Unread(Struct, frozen=True):
    """A line that was not read: code and text of the error, and the id of its request if it can be seen."""

    code: int
    why: str
    request: int | str | None = None


class ClientPipe:
    """Implements the SDK's `Transport` on the pipe to the client."""

    def __init__(self, reading: IO[str], writing: IO[str]) -> None:
        """Read and write in a thread each: a client that does not read delays only what is written."""
        self._reading, self._writing = reading, writing
        self._reader, self._writer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._answering: set[int | str] = set()
        self._unwritten = 0
        self._asked: dict[tuple[str, str], int] = {}

    async def receive(self) -> Message | None:
        """Return the next message, None at the end of the pipe; answer what is none with an error."""
        try:
            while (read := await self._in_thread(self._reader, self._read)) is not None:
                if isinstance(read, _Unread):
                    await self._refuse(read.request, read.code, read.why)
                elif not _is_message(read):
                    await self._refuse(None, INVALID_REQUEST, NO_MESSAGE)
                elif await self._admits(read):
                    return _without_meta(read)
        except ConnectionError:
            pass  # nobody reads the answer, so it is the end too
        return None

    async def send(self, message: Message) -> None:
        """Write a message; raises `ConnectionError` when the client is gone."""
        if message.get("method") == PERMISSION:
            params = message["params"]
            self._asked[params["sessionId"], params["toolCall"]["toolCallId"]] = message["id"]
        if "method" in message:
            await self._write_out(message)
            return
        self._answering.discard(message["id"])
        self._unwritten += 1
        try:
            await self._write_out(message)
        finally:
            self._unwritten -= 1

    async def withdraw(self, session: str, tool_call: str) -> None:
        """Tell the client that its answer to the question about a tool call is no longer needed."""
        request = self._asked.pop((session, tool_call), None)
        if request is not None:
            await self.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": request}})

    async def close(self) -> None:
        """Close nothing: the process ends with the connection, and a thread may be waiting for the client."""

    async def _write_out(self, message: Message) -> None:
        await self._in_thread(self._writer, lambda: self._write(message))

    async def _in_thread(self, pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def _read(self) -> "JsonValue | _Unread":
        """Return the next value, or why it is none; None at the end."""
        while (found := bounded_line(self._reading))[0]:
            line, whole = found
            if not whole:
                return _Unread(PARSE_ERROR, f"a message has at most {MAX_MESSAGE_CHARS:,} characters", _id_in(line))
            if not line.strip():
                continue
            try:
                value = read_bounded_json(line)
            except JsonError as error:
                return _Unread(PARSE_ERROR, f"that is not read as JSON: {error}", _id_in(line))
            return _Unread(INVALID_REQUEST, NO_MESSAGE) if value is None else value
        return None

    def _write(self, message: Message) -> None:
        try:
            # Lone surrogates are escaped, so that any text can be written. The SDK's errors may hold exceptions.
            self._writing.write(f"{json.dumps(message, separators=(',', ':'), default=str)}\n")
            self._writing.flush()
        except (OSError, ValueError) as error:
            raise ConnectionError("the client is gone") from error

    async def _refuse(self, request: int | str | None, code: int, why: str) -> None:
        # While the client does not read this, nothing more of it is read.
        await self._write_out({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": why}})

    async def _admits(self, message: Message) -> bool:
        """Return True for a message that the SDK may have: not one request too many, nor an unknown notification."""
        request, method = message.get("id"), message.get("method")
        if method is None:
            self._asked = {question: each for question, each in self._asked.items() if each != request}
            return True
        if "id" not in message:
            return bool(method == CANCEL)
        if request is None or request in self._answering:
            await self._refuse(request, INVALID_REQUEST, "a request needs an id of its own")
            return False
        if len(self._answering) + self._unwritten >= MAX_REQUESTS:
            await self._refuse(request, BUSY, f"{MAX_REQUESTS} requests are being answered; wait for one")
            return False
        self._answering.add(request)
        return True


def _id_in(line: str) -> int | str | None:
    """Return the id at the beginning of a line that is not read, so that the client learns what was refused."""
    found = _ID.search(line[:MAX_HEAD_CHARS])
    return None if found is None else int(found[1]) if found[1] else found[2]


def _is_message(value: JsonValue) -> TypeGuard[Message]:
    """Return True if the SDK can take a value apart: it does not look at the types of a message's parts."""
    if not isinstance(value, dict):
        return False
    request, method, error = value.get("id"), value.get("method"), value.get("error")
    identified = request is None or (isinstance(request, int | str) and not isinstance(request, bool))
    called = isinstance(method, str) if "method" in value else "id" in value
    return identified and called and (error is None or isinstance(error, dict))


def _without_meta(message: Message) -> Message:
    """Return a message without `_meta`: the SDK would pass its names as further arguments of the method."""
    params = message.get("params")
    if not isinstance(params, dict) or "_meta" not in params:
        return message
    return {**message, "params": {name: value for name, value in params.items() if name != "_meta"}}
