"""The server over HTTP at the path `/mcp`, on loopback unless it has a name elsewhere."""

import asyncio
import secrets
from collections.abc import Callable

from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.invocation import Invocation
from agent_workbench.http_server.listener import EVERYWHERE, LOOPBACK, listen, serve
from agent_workbench.http_server.request_guard import MAX_BODY_BYTES, BearerToken, RequestGuard
from agent_workbench.mcp.served_repo import served_repo
from agent_workbench.server_process.process_end import end_process, first_end

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
