"""Sockets that front ends listen on, and uvicorn on one of them with bounds on connections of strangers."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from agent_workbench.core.errors import UsageError
from agent_workbench.http_server.request_guard import RequestGuard

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only where the user named a host
BACKLOG = 64
HEAD_BYTES = 32 * 1024
CLOSE_SECONDS = 1

MAX_CONNECTIONS = 64
HEAD_SECONDS = 5.0


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


class LimitedConnection(H11Protocol):
    """A connection that ends if there are too many, or if no whole head of a request comes in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Take a connection, or end it at once."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read a piece; the time for a head begins with its first one."""
        before = self._request()
        super().data_received(data)
        now = self._request()
        if now is not before:
            self._stop_waiting()
        elif self._deadline is None and (now is None or now.response_complete):
            self._await_head()

    def _request(self) -> RequestResponseCycle | None:
        """Return the newest request, None before the first one."""
        return self.cycle

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
