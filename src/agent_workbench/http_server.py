"""Servers over HTTP: who is answered and within which limits, and the socket that they listen on."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Protocol, TypeAlias

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from agent_workbench.core.errors import UsageError

MAX_BODY_BYTES = 4 * 1024 * 1024
BODY_SECONDS = 10.0
LINGER_SECONDS = 1.0
"""Longest time to read on what a refused client still sends."""
HOSTS = ("127.0.0.1", "localhost")

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only where the user named a host
BACKLOG = 64
HEAD_BYTES = 32 * 1024
CLOSE_SECONDS = 1

MAX_CONNECTIONS = 64
HEAD_SECONDS = 5.0


class Refusal(Exception):
    """A request that is answered here: its status, and a sentence for who sent it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class SenderProof(Protocol):
    """Proof that a sender gives. Both methods raise `Refusal` for one without it."""

    def check_head(self, scope: Scope) -> None:
        """Check the head, before anything of the body is read."""

    def check_body(self, scope: Scope, body: bytes) -> None:
        """Check the whole body."""


class BearerToken:
    """Proof by `Authorization: Bearer TOKEN`."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def check_head(self, scope: Scope) -> None:
        """Raise `Refusal` unless the token is there, once."""
        (said, *more) = header_values(scope, b"authorization") or [b""]
        kind, _, token = said.partition(b" ")
        if more or kind.lower() != b"bearer" or not secrets.compare_digest(token, self._token):
            raise Refusal(401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`")

    def check_body(self, scope: Scope, body: bytes) -> None:
        """Take every body."""


class RequestGuard:
    """ASGI application around `app`, for senders with the `proof`.

    A page of another site, a rebound name and another user of the machine lack the origin, the host or the proof.
    `name` is what the server is called elsewhere: a proxy may serve it at another port, and over TLS.
    """

    def __init__(
        self, app: Application, proof: SenderProof, port: int, name: str = "", max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self._app = app
        self._proof = proof
        self._max_body_bytes = max_body_bytes
        local = {f"{host}:{port}" for host in HOSTS}
        named = {name, f"{name}:{port}"} if name else set[str]()
        self._hosts = {host.encode() for host in local | named}
        origins = {f"http://{host}" for host in local | named} | {f"https://{host}" for host in named}
        self._origins = {origin.encode() for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = _RequestBody(scope, receive, self._max_body_bytes)
        try:
            self._check(scope)
            await body.read()
            self._proof.check_body(scope, body.content)
        except Refusal as refusal:
            await body.discard()
            await _refuse(send, refusal)
            return
        await self._app(scope, _replay(body.content, receive), send)

    def _check(self, scope: Scope) -> None:
        """Raise `Refusal` for a request that is not for this server or not from its user."""
        if scope["type"] != "http":
            raise Refusal(403, "only HTTP is served here")
        if header_values(scope, b"host") not in [[host] for host in self._hosts]:
            raise Refusal(421, "the Host header does not name this server")
        origins = header_values(scope, b"origin")
        if any(origin not in self._origins for origin in origins):
            raise Refusal(403, "the Origin header names another site")
        self._proof.check_head(scope)


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """Return the values of a header, one for each time that it was sent."""
    return [value for each, value in scope["headers"] if each.lower() == name]


class _RequestBody:
    """Body of a request that has at most `max_bytes`."""

    def __init__(self, scope: Scope, receive: Receive, max_bytes: int) -> None:
        self._scope = scope
        self._receive = receive
        self._max_bytes = max_bytes
        self._content = bytearray()
        self._ended = False

    @property
    def content(self) -> bytes:
        """What was read."""
        return bytes(self._content)

    async def read(self) -> None:
        """Read to the end; raise `Refusal` for a body that is too long, or too long on its way."""
        length = (header_values(self._scope, b"content-length") or [b"0"])[0]
        if len(length) > 12 or (length.isdigit() and int(length) > self._max_bytes):
            raise self._too_long()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while not self._ended:
                    self._content += await self._piece()
                    if len(self._content) > self._max_bytes:
                        raise self._too_long()
        except TimeoutError:
            raise Refusal(408, f"the body was not sent within {BODY_SECONDS:g} s") from None

    async def discard(self) -> None:
        """Read on for a moment before a refusal.

        A connection that is closed with unread bytes is reset, and the client may lose the answer (RFC 9112, 9.6).
        """
        with contextlib.suppress(TimeoutError, Refusal):
            async with asyncio.timeout(LINGER_SECONDS):
                discarded = 0
                while not self._ended and discarded <= self._max_bytes:
                    discarded += len(await self._piece())

    async def _piece(self) -> bytes:
        message = await self._receive()
        self._ended = not message.get("more_body", False)
        if message["type"] != "http.request":
            raise Refusal(400, "the client went away")
        return bytes(message.get("body", b""))

    def _too_long(self) -> Refusal:
        return Refusal(413, f"the body has more than {self._max_bytes:,} bytes")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the whole body first, and then what comes of the client."""
    sent = False

    async def replayed() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _refuse(send: Send, refusal: Refusal) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"connection", b"close"),
        (b"cache-control", b"no-store"),
    ]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{refusal}\n".encode()})


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
