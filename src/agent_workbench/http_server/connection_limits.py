"""Connections to the HTTP server: a bounded number, none of which may be slow with the head of a request."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MAX_CONNECTIONS = 64
HEAD_SECONDS = 5.0


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
