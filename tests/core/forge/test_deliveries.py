import hashlib
import hmac

import pytest

from agent_workbench.core.forge import deliveries
from agent_workbench.core.forge.deliveries import Deliveries

SECRET = "webhook-secret-0123456789"
BODY = b'{"action": "labeled"}'
RIGHT = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest().encode()
ID = (b"x-gitea-delivery", b"f6266f16-1bf3-46a5-9ea4-602e06ead473")

Headers = list[tuple[bytes, bytes]]


def taken(headers: Headers, body: bytes = BODY, check: Deliveries | None = None) -> str:
    check = check or Deliveries(SECRET)
    return check.head_problem(headers) or check.body_problem(headers, body)


@pytest.mark.parametrize(
    "headers",
    [
        [(b"x-gitea-signature", RIGHT), ID],
        [(b"x-forgejo-signature", RIGHT), (b"x-gitea-signature", RIGHT), (b"x-forgejo-delivery", b"1")],
        [(b"x-hub-signature-256", b"sha256=" + RIGHT), (b"x-github-delivery", b"1")],
        [(b"x-gitea-signature", RIGHT), (b"x-hub-signature-256", b"sha256=" + RIGHT), ID, (b"x-gogs-delivery", ID[1])],
    ],
)
def test_a_signed_delivery_is_taken_once(headers: Headers) -> None:
    check = Deliveries(SECRET)
    assert taken(headers, check=check) == ""
    assert taken(headers, check=check) == "the delivery was seen before"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [ID],
        [(b"x-gitea-signature", RIGHT)],
        [(b"x-gitea-signature", b""), ID],
        [(b"x-gitea-signature", RIGHT[:-1]), ID],
        [(b"x-gitea-signature", b"sha256=" + RIGHT), ID],
        [(b"x-hub-signature-256", RIGHT), ID],
        [(b"x-gitea-signature", RIGHT), (b"x-hub-signature-256", b"sha256=00"), ID],
        [(b"x-gitea-signature", RIGHT), (b"x-gitea-signature", b"00"), ID],
        [(b"x-gitea-signature", RIGHT), ID, (b"x-github-delivery", b"another")],
        [(b"x-gitea-signature", RIGHT), (b"x-gitea-delivery", b"x" * 101)],
        [(b"x-gitea-signature", b"\xff\xfe"), ID],
    ],
)
def test_anything_else_is_refused(headers: Headers) -> None:
    assert taken(headers)


def test_a_body_that_was_signed_before_is_refused_under_another_id() -> None:
    check = Deliveries(SECRET)
    assert taken([(b"x-gitea-signature", RIGHT), ID], check=check) == ""
    assert taken([(b"x-gitea-signature", RIGHT), (b"x-gitea-delivery", b"2")], check=check)


def test_a_refused_delivery_is_not_remembered() -> None:
    check = Deliveries(SECRET)
    assert taken([(b"x-gitea-signature", b"00"), ID], check=check)
    assert taken([(b"x-gitea-signature", RIGHT), ID], check=check) == ""


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MOST_REMEMBERED", 4)
    check = Deliveries(SECRET)
    for number in range(10):
        body = b"%d" % number
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest().encode()
        assert taken([(b"x-gitea-signature", signature), (b"x-gitea-delivery", body)], body, check) == ""
    assert len(check._seen) == 4
