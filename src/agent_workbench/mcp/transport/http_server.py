"""The server over HTTP at the path `/mcp`, on loopback unless it has a name elsewhere."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator

import uvicorn

from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.invocation import Invocation
from agent_workbench.mcp.served_repo import served_repo
from agent_workbench.mcp.transport.connection_limits import LimitedConnection
from agent_workbench.mcp.transport.process_end import end_process, first_end
from agent_workbench.mcp.transport.request_guard import MAX_BODY_BYTES, RequestGuard

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only where the user named a host
TOKEN_VARIABLE = "AGENT_MCP_TOKEN"  # noqa: S105 - its name
MIN_TOKEN_CHARS = 32
PATH = "/mcp"
TOKEN_BYTES = 32
BACKLOG = 64
HEAD_BYTES = 32 * 1024
CLOSE_SECONDS = 1

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
        listening = _listen(address, port)
        port = listening.getsockname()[1]
        token = own or secrets.token_urlsafe(TOKEN_BYTES)
        # Each request stands for itself in both protocol eras: nothing is kept for a client between two of them.
        # For loopback the SDK checks the host a second time.
        app = sdk.streamable_http_app(
            streamable_http_path=PATH, stateless_http=True, max_request_body_size=MAX_BODY_BYTES, host=address
        )
        config = uvicorn.Config(
            RequestGuard(app, token, port, name),
            http=LimitedConnection,
            lifespan="off",
            ws="none",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=HEAD_BYTES,
            timeout_graceful_shutdown=CLOSE_SECONDS,
        )
        async with sdk.session_manager.run():
            on_ready(f"http://{name or LOOPBACK}:{port}{PATH}", "" if own else token)
            await first_end(_Server(config).serve(sockets=[listening]), parent)
    end_process(ExitCode.DONE)


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers: `first_end` has them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def _own_token(invocation: Invocation) -> str:
    token = invocation.environ.get(TOKEN_VARIABLE, "")
    if token and (len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token):
        raise UsageError(
            f"{TOKEN_VARIABLE} is no token of {MIN_TOKEN_CHARS} characters or more",
            advice=f"make one: python3 -c 'import secrets; print(secrets.token_urlsafe({TOKEN_BYTES}))'",
        )
    return token


def _listen(address: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        why = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"cannot listen on {address}:{port}: {why}", advice="choose another --port") from error
    return listening
