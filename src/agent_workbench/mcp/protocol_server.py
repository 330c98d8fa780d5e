"""The protocol's requests, answered from the served repository, over a pipe or over HTTP on loopback."""

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp import types as wire
from mcp.server import ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from agent_workbench.api.sessions.unattended_run import TaskRuns
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import ExitCode, UsageError, WorkbenchError, error_text
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import did_you_mean, quoted
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.core.version import __version__
from agent_workbench.http_server import EVERYWHERE, LOOPBACK, MAX_BODY_BYTES, BearerToken, RequestGuard, listen, serve
from agent_workbench.mcp.consultant_tools import listed_prompts, prompt_text
from agent_workbench.mcp.knowledge_tools import note_resources
from agent_workbench.mcp.resources import Resources, UnknownResource, session_resources
from agent_workbench.mcp.served_tool import (
    BadArguments,
    FailedCall,
    JsonObject,
    ServedTool,
    by_name,
    check_arguments,
)
from agent_workbench.mcp.served_tools import served_tools
from agent_workbench.server_process import bounded_line, end_process, first_end, log_to_stderr, take_pipe

NAME = "agent-workbench"
TITLE = "Agent Workbench"
INSTRUCTIONS = (
    "A workbench for coding agents on this machine, for the git repository it was started in. It lists and shows plan, "
    "sessions, knowledge and code, asks its own models, and starts tasks of the plan. Whatever needs a decision waits "
    "for a person: no tool approves anything. run_task returns at once; run_status tells how the run goes."
)
MAX_CALLS = 16
PROGRESS_SECONDS = 5
"""Clients give up on a silent call after a minute or so, and a local model may think for longer."""
MAX_RESULT_CHARS = 2_200_000
"""Characters of a result as they are, not as JSON escapes them: a file of a skill may have 2 MiB."""
LIST_SECONDS = 60
DEFECT = "this is a defect of the workbench; its standard error has the traceback"

Context = ServerRequestContext[Any]
_log = logging.getLogger(__name__)
Result = TypeVar("Result")

STOP_SECONDS = 0.5
"""Time for started tasks to record that they were left; what they run ends with this process."""

TOKEN_VARIABLE = "AGENT_MCP_TOKEN"  # noqa: S105 - its name
MIN_TOKEN_CHARS = 32
PATH = "/mcp"
TOKEN_BYTES = 32

OnReady = Callable[[str, str], None]


class ProtocolServer:
    """The SDK's server with our tables behind it; it serves any number of connections."""

    def __init__(self, invocation: Invocation, tools: Sequence[ServedTool], resources: Resources) -> None:
        self._invocation = invocation
        self._tools = by_name(tools)
        self._resources = resources
        self._working: set[asyncio.Task[Any]] = set()
        hint = CacheHint(ttl_ms=LIST_SECONDS * 1_000, scope="private")
        self.sdk: Server[Any] = Server(
            NAME,
            version=__version__,
            title=TITLE,
            instructions=INSTRUCTIONS,
            cache_hints={
                "tools/list": hint,
                "prompts/list": hint,
                "resources/templates/list": hint,
                "server/discover": hint,
                "resources/list": CacheHint(),
                "resources/read": CacheHint(),
            },
            get_tool_input_schema=self._schema_of,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    def _schema_of(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.get(name)
        return None if tool is None else json.loads(tool.schema)

    async def _list_tools(self, _: Context, params: wire.PaginatedRequestParams | None) -> wire.ListToolsResult:
        return wire.ListToolsResult(tools=[_described(tool) for tool in self._tools.values()])

    async def _call_tool(self, context: Context, params: wire.CallToolRequestParams) -> wire.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            near = did_you_mean(params.name, self._tools)
            raise MCPError(code=wire.INVALID_PARAMS, message=f"unknown tool {quoted(params.name)}{near}")
        try:
            arguments = check_arguments(tool, params.arguments)
            return _answer(await self._finish(context, lambda: tool.call(arguments)))
        except BadArguments as error:
            return _failed(f"{tool.name}: {error}")
        except FailedCall as failure:
            return _failed(str(failure), failure.outcome)
        except WorkbenchError as error:
            return _failed(error_text(error))
        except Exception:
            _log.exception("%s failed", tool.name)
            return _failed(f"{tool.name} failed; {DEFECT}")

    async def _finish(self, context: Context, call: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Return the result of a call; meanwhile a client that asks for progress hears that it goes on.

        A call that its client gives up is cancelled, and records that in its own time. Raises `WorkbenchError` while
        `MAX_CALLS` others are at work.
        """
        if len(self._working) >= MAX_CALLS:
            raise WorkbenchError(f"{MAX_CALLS} calls are being answered", advice="wait for one, then call again")
        working = asyncio.create_task(call())
        self._working.add(working)
        working.add_done_callback(self._ended)
        seconds = 0
        try:
            while not (await asyncio.wait({working}, timeout=PROGRESS_SECONDS))[0]:
                seconds += PROGRESS_SECONDS
                await context.session.report_progress(seconds, None, f"{seconds} s")
        finally:
            working.cancel()
        return working.result()

    def _ended(self, working: "asyncio.Task[Any]") -> None:
        self._working.discard(working)
        if not working.cancelled():
            working.exception()  # seen: whoever waits for the call is told

    async def _list_resources(
        self, context: Context, params: wire.PaginatedRequestParams | None
    ) -> wire.ListResourcesResult:
        with _as_protocol_errors():
            listed = await self._finish(context, self._resources.listed)
        return wire.ListResourcesResult(
            resources=[
                wire.Resource(uri=each.uri, name=each.name, description=each.summary, mime_type=each.mime)
                for each in listed
            ]
        )

    async def _list_templates(
        self, _: Context, params: wire.PaginatedRequestParams | None
    ) -> wire.ListResourceTemplatesResult:
        kinds = self._resources.kinds.values()
        return wire.ListResourceTemplatesResult(
            resource_templates=[
                wire.ResourceTemplate(
                    uri_template=each.template, name=each.folder, description=each.summary, mime_type=each.mime
                )
                for each in kinds
            ]
        )

    async def _read_resource(self, context: Context, params: wire.ReadResourceRequestParams) -> wire.ReadResourceResult:
        uri = str(params.uri)
        with _as_protocol_errors({"uri": uri}):
            text, mime = await self._finish(context, lambda: self._resources.read(uri))
        return wire.ReadResourceResult(contents=[wire.TextResourceContents(uri=uri, text=_whole(text), mime_type=mime)])

    async def _list_prompts(self, _: Context, params: wire.PaginatedRequestParams | None) -> wire.ListPromptsResult:
        return wire.ListPromptsResult(prompts=list(listed_prompts()))

    async def _get_prompt(self, context: Context, params: wire.GetPromptRequestParams) -> wire.GetPromptResult:
        given = params.arguments or {}
        with _as_protocol_errors():
            text = await self._finish(context, lambda: prompt_text(self._invocation, params.name, given))
        content = wire.TextContent(text=_whole(text))
        return wire.GetPromptResult(messages=[wire.PromptMessage(role="user", content=content)])


@contextmanager
def _as_protocol_errors(data: object = None) -> Iterator[None]:
    """Turn our errors into those of the protocol, with `data` beside them."""
    try:
        yield
    except (UnknownResource, UsageError) as error:
        told = error_text(error) if isinstance(error, WorkbenchError) else str(error)
        raise MCPError(code=wire.INVALID_PARAMS, message=told, data=data) from None
    except WorkbenchError as error:
        raise MCPError(code=wire.INTERNAL_ERROR, message=error_text(error), data=data) from None


def _described(tool: ServedTool) -> wire.Tool:
    hints = wire.ToolAnnotations(read_only_hint=tool.reads, destructive_hint=False)
    return wire.Tool(name=tool.name, description=tool.summary, input_schema=json.loads(tool.schema), annotations=hints)


def _answer(value: JsonObject) -> wire.CallToolResult:
    """Return a result as text and as structure."""
    if (size := _chars(value)) > MAX_RESULT_CHARS:
        return _failed(f"the result has {size:,} characters, more than {MAX_RESULT_CHARS:,}; ask for less")
    text = _json(value)
    return wire.CallToolResult(content=[wire.TextContent(text=text)], structured_content=json.loads(text))


def _failed(why: str, outcome: Mapping[str, JsonValue] | None = None) -> wire.CallToolResult:
    told = json.loads(_json(outcome)) if outcome else None
    return wire.CallToolResult(content=[wire.TextContent(text=_whole(why))], structured_content=told, is_error=True)


def _json(value: Mapping[str, JsonValue]) -> str:
    return _whole(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _chars(value: JsonValue) -> int:
    """Return the number of characters of all texts of a value, its names and numbers included."""
    match value:
        case dict():
            return sum(len(name) + _chars(each) for name, each in value.items())
        case list():
            return sum(map(_chars, value))
        case _:
            return len(value if isinstance(value, str) else str(value)) + 1


def _whole(text: str) -> str:
    """Return the text without half characters, which no client can read."""
    return text.encode("utf-8", "replace").decode()


@asynccontextmanager
async def served_repo(invocation: Invocation) -> "AsyncIterator[Server[Any]]":
    """Yield the SDK's server for the repository around `invocation`, and stop what clients started at the end.

    Raises `RepoError` where there is no repository.
    """
    await trusted_repo(invocation)
    log_to_stderr()
    runs = TaskRuns(invocation)
    try:
        tools = served_tools(invocation, runs)
        resources = Resources(invocation, (session_resources(invocation), note_resources(invocation)))
        yield ProtocolServer(invocation, tools, resources).sdk
    finally:
        stopping = asyncio.ensure_future(runs.stop())
        await asyncio.wait({stopping}, timeout=STOP_SECONDS)


def serve_http(invocation: Invocation, port: int, on_ready: OnReady, parent: int, *, name: str = "") -> None:
    """Serve at `port` (0: a free one) until the process `parent` ends or a signal comes; ends the process.

    With `name`, the host that clients elsewhere use, it listens on every interface. `on_ready` gets the address and the
    token that was made; the user's own (`AGENT_MCP_TOKEN`) it does not get. Raises `RepoError`, and `UsageError` if the
    port is not available or the user's token is short.
    """
    asyncio.run(_serve(invocation, port, on_ready, parent, name))


async def _serve(invocation: Invocation, port: int, on_ready: OnReady, parent: int, name: str) -> None:
    own = _own_token(invocation)
    async with served_repo(invocation) as sdk:
        address = EVERYWHERE if name else LOOPBACK
        listening = listen(address, port, "--port")
        port = listening.getsockname()[1]
        token = own or secrets.token_urlsafe(TOKEN_BYTES)
        # Each request stands for itself in both protocol eras: nothing is kept for a client between two of them.
        # For loopback the SDK checks the host a second time.
        app = sdk.streamable_http_app(
            streamable_http_path=PATH, stateless_http=True, max_request_body_size=MAX_BODY_BYTES, host=address
        )
        async with sdk.session_manager.run():
            on_ready(f"http://{name or LOOPBACK}:{port}{PATH}", "" if own else token)
            await first_end(serve(RequestGuard(app, BearerToken(token), port, name), listening), parent)
    end_process(ExitCode.DONE)


def _own_token(invocation: Invocation) -> str:
    token = invocation.environ.get(TOKEN_VARIABLE, "")
    if token and (len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token):
        raise UsageError(
            f"{TOKEN_VARIABLE} is no token of {MIN_TOKEN_CHARS} characters or more",
            advice=f"make one: python3 -c 'import secrets; print(secrets.token_urlsafe({TOKEN_BYTES}))'",
        )
    return token


class BoundedLines(anyio.AsyncFile[str]):
    """Lines of a stream; one that is too long is dropped, and an empty one is in its place."""

    async def readline(self) -> str:
        """Return the next line, empty at the end of the stream. Who stops waiting leaves the thread behind."""
        line, whole = await anyio.to_thread.run_sync(bounded_line, self.wrapped, abandon_on_cancel=True)
        return line if whole else "\n"


def serve_stdio(invocation: Invocation, parent: int) -> None:
    """Serve until the client closes the pipe or is gone; ends the process. Raises `RepoError` before that."""
    asyncio.run(_serve_pipe(invocation, parent))


async def _serve_pipe(invocation: Invocation, parent: int) -> None:
    async with served_repo(invocation) as sdk:
        reading_end, writing_end = take_pipe()
        try:
            async with stdio_server(BoundedLines(reading_end), anyio.wrap_file(writing_end)) as (reading, writing):
                await first_end(sdk.run(reading, writing, sdk.create_initialization_options()), parent)
        except* OSError:
            pass  # the client is gone, and nobody reads the answers
    end_process(ExitCode.DONE)
