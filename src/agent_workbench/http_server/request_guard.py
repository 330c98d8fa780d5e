"""Guard in front of an HTTP server: host, origin, proof of the sender, size and time of each request."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeAlias

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
