"""The server over HTTP on loopback, at the path `/mcp`."""

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
PATH = "/mcp"
TOKEN_BYTES = 32
BACKLOG = 64
HEAD_BYTES = 32 * 1024
CLOSE_SECONDS = 1

OnReady = Callable[[str, str], None]


def serve_http(invocation: Invocation, port: int, on_ready: OnReady, parent: int) -> None:
    """Serve at `port` (0: a free one) until the process `parent` ends or a signal comes; ends the process.

    `on_ready` gets the address and the token. Raises `RepoError`, and `UsageError` if the port is not available.
    """
    asyncio.run(_serve(invocation, port, on_ready, parent))


async def _serve(invocation: Invocation, port: int, on_ready: OnReady, parent: int) -> None:
    async with served_repo(invocation) as sdk:
        listening = _listen(port)
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(TOKEN_BYTES)
        # Each request stands for itself in both protocol eras: nothing is kept for a client between two of them.
        app = sdk.streamable_http_app(
            streamable_http_path=PATH, stateless_http=True, max_request_body_size=MAX_BODY_BYTES
        )
        config = uvicorn.Config(
            RequestGuard(app, token, port),
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
            on_ready(f"http://{LOOPBACK}:{port}{PATH}", token)
            await first_end(_Server(config).serve(sockets=[listening]), parent)
    end_process(ExitCode.DONE)


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers: `first_end` has them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        why = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"cannot listen on {LOOPBACK}:{port}: {why}", advice="choose another --port") from error
    return listening
