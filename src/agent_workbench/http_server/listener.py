"""Sockets that front ends listen on, and uvicorn on one of them with limits for strangers."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator

import uvicorn

from agent_workbench.core.errors import UsageError
from agent_workbench.http_server.connection_limits import LimitedConnection
from agent_workbench.http_server.request_guard import RequestGuard

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only where the user named a host
BACKLOG = 64
HEAD_BYTES = 32 * 1024
CLOSE_SECONDS = 1


def listen(address: str, port: int, flag: str) -> socket.socket:
    """Return a socket that listens at `port` (0: a free one); raise `UsageError` that names the `flag` to change."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        why = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"cannot listen on {address}:{port}: {why}", advice=f"choose another {flag}") from error
    return listening


async def serve(guard: RequestGuard, listening: socket.socket) -> None:
    """Answer requests until this is cancelled. Signals are left to the caller."""
    config = uvicorn.Config(
        guard,
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
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield
