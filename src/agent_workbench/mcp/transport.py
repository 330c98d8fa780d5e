"""The server over standard input and output, or over HTTP at `/mcp`, on loopback unless it is named."""

import asyncio
import secrets
from collections.abc import Callable

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.invocation import Invocation
from agent_workbench.http_server import EVERYWHERE, LOOPBACK, MAX_BODY_BYTES, BearerToken, RequestGuard, listen, serve
from agent_workbench.mcp.protocol_server import served_repo
from agent_workbench.server_process import bounded_line, end_process, first_end, take_pipe

TOKEN_VARIABLE = "AGENT_MCP_TOKEN"  # noqa: S105 - its name
MIN_TOKEN_CHARS = 32
PATH = "/mcp"
TOKEN_BYTES = 32

OnReady = Callable[[str, str], None]


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
