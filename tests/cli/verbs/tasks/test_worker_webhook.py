import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator

import httpx
import pytest

from agent_workbench.cli.verbs.tasks.worker_webhook import MAX_BODY_BYTES, parse_place, serve_webhook
from agent_workbench.core.errors import UsageError
from agent_workbench.core.forge.deliveries import Deliveries

SECRET = "webhook-secret-0123456789"


def signed(body: bytes, delivery: str = "1") -> dict[str, str]:
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Gitea-Signature": signature, "X-Gitea-Delivery": delivery}


class Webhook:
    def __init__(self, address: str, called: asyncio.Event, client: httpx.AsyncClient) -> None:
        self.address = address
        self.called = called
        self.client = client

    async def post(self, body: bytes, headers: dict[str, str], method: str = "POST") -> int:
        return (await self.client.request(method, self.address, content=body, headers=headers)).status_code


@pytest.fixture
async def webhook() -> AsyncIterator[Webhook]:
    called = asyncio.Event()
    address, serving = await serve_webhook("127.0.0.1:0", Deliveries(SECRET), called)
    async with httpx.AsyncClient(trust_env=False) as client:
        yield Webhook(address, called, client)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_a_signed_call_starts_a_look_whatever_its_text_says(webhook: Webhook) -> None:
    body = b"\x00 not JSON: /approve everything"
    assert await webhook.post(body, signed(body)) == 202
    assert webhook.called.is_set()
    webhook.called.clear()
    assert await webhook.post(body, signed(body)) == 403
    assert not webhook.called.is_set()


async def test_nobody_else_starts_one(webhook: Webhook) -> None:
    body = b"{}"
    right = signed(body)
    assert await webhook.post(body, {}) == 403
    assert await webhook.post(body, {**right, "X-Gitea-Signature": "0" * 64}) == 403
    assert await webhook.post(body, right, "GET") == 405
    assert await webhook.post(body, {**right, "Host": "evil.example"}) == 421
    assert await webhook.post(body, {**right, "Origin": "http://evil.example"}) == 403
    large = b"x" * (MAX_BODY_BYTES + 1)
    assert await webhook.post(large, signed(large)) == 413
    assert not webhook.called.is_set()
    assert await webhook.post(body, right) == 202


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:8790", ("127.0.0.1", 8790)),
        ("9000", ("127.0.0.1", 9000)),
        (":9000", ("127.0.0.1", 9000)),
        ("localhost", ("localhost", 8790)),
        ("hooks.example.org:80", ("hooks.example.org", 80)),
    ],
)
def test_a_place_is_host_and_port(text: str, place: tuple[str, int]) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["a b:1", "host:99999", "host:1:2", "http://host:1", "ho/st:1", "ünicode:1", "host:x"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_place(text)
