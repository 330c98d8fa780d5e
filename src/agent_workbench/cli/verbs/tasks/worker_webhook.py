"""The webhook of `agent worker`: a signed call of the forge starts a look at it, and nothing else."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.core.errors import UsageError
from agent_workbench.http_server.listener import EVERYWHERE, LOOPBACK, listen, serve
from agent_workbench.http_server.request_guard import HOSTS, Message, Receive, Refusal, RequestGuard, Scope, Send

if TYPE_CHECKING:
    from agent_workbench.core.forge.deliveries import Deliveries

DEFAULT_PORT = 8790
MAX_BODY_BYTES = 1_000_000


class SignedDelivery:
    """Proof of a sender by the signature of its delivery."""

    def __init__(self, deliveries: "Deliveries") -> None:
        self._deliveries = deliveries

    def check_head(self, scope: Scope) -> None:
        """Raise `Refusal` for another method, no signature, and an id that was seen before."""
        if scope["method"] != "POST":
            raise Refusal(405, "a webhook is called with POST")
        if problem := self._deliveries.head_problem(_headers(scope)):
            raise Refusal(403, problem)

    def check_body(self, scope: Scope, body: bytes) -> None:
        """Raise `Refusal` for a body that the forge did not sign."""
        if problem := self._deliveries.body_problem(_headers(scope), body):
            raise Refusal(403, problem)


async def serve_webhook(
    place: str, deliveries: "Deliveries", called: asyncio.Event
) -> tuple[str, "asyncio.Task[None]"]:
    """Listen at `HOST:PORT`; return the address, and the task that answers until it is cancelled.

    A host that is not this machine's loopback is the name by which the forge calls: it then listens on every
    interface. Raises `UsageError` for a place that cannot be used.
    """
    host, port = parse_place(place)
    local = host in HOSTS
    listening = listen(LOOPBACK if local else EVERYWHERE, port, "--webhook HOST:PORT")
    port = listening.getsockname()[1]

    async def take(scope: Scope, receive: Receive, send: Send) -> None:
        """Note the call; what the body says does not matter."""
        del scope, receive
        called.set()
        start: Message = {"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]}
        await send(start)
        await send({"type": "http.response.body", "body": b""})

    guard = RequestGuard(take, SignedDelivery(deliveries), port, "" if local else host, MAX_BODY_BYTES)
    return f"http://{host}:{port}/", asyncio.create_task(serve(guard, listening))


def parse_place(place: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `HOST` or `PORT`; raise `UsageError`."""
    if ":" not in place and not place.isdigit():
        place = f"{place}:{DEFAULT_PORT}"
    host, _, number = place.rpartition(":")
    host = host or LOOPBACK
    named = all(part and part.replace("-", "").isalnum() for part in host.split(".")) and host.isascii()
    if not named or not number.isdecimal() or len(number) > 5 or int(number) > 65_535:
        raise UsageError(f"{place!r} is not HOST:PORT", advice=f"for example {LOOPBACK}:{DEFAULT_PORT}")
    return host, int(number)


def _headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in scope["headers"]]
