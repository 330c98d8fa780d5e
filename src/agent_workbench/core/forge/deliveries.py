"""Deliveries of a webhook: signed by the forge, and each taken once."""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Sequence

MOST_REMEMBERED = 10_000
MIN_SECRET_CHARS = 16
_MAX_ID_BYTES = 100
_SIGNATURES = {b"x-gitea-signature": b"", b"x-forgejo-signature": b"", b"x-hub-signature-256": b"sha256="}
"""Headers with the HMAC-SHA256 of the body in hexadecimal, behind this prefix."""
_IDS = (b"x-gitea-delivery", b"x-forgejo-delivery", b"x-github-delivery", b"x-gogs-delivery")

Headers = Sequence[tuple[bytes, bytes]]


class Deliveries:
    """Check of deliveries with the secret that the forge and this worker share.

    The id of a delivery is not signed, but its body is: a repetition of either is refused.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def head_problem(self, headers: Headers) -> str:
        """Return why the head of a delivery is refused, empty if its body is to be read."""
        if not any(name in _SIGNATURES for name, _ in headers):
            return "the delivery has no signature"
        identity = self._identity(headers)
        if not identity:
            return "the delivery has no id"
        return "the delivery was seen before" if b"id " + identity in self._seen else ""

    def body_problem(self, headers: Headers, body: bytes) -> str:
        """Return why a delivery is refused, empty if it is the forge's and new; then it is remembered."""
        digest = hmac.new(self._secret, body, hashlib.sha256)
        right = digest.hexdigest().encode()
        said = [(name, value) for name, value in headers if name in _SIGNATURES]
        fits = [hmac.compare_digest(value, _SIGNATURES[name] + right) for name, value in said]
        if not fits or not all(fits):
            return "the signature is wrong"
        marks = (b"id " + self._identity(headers), b"body " + digest.digest())
        if any(mark in self._seen for mark in marks):
            return "the delivery was seen before"
        for mark in marks:
            self._seen[mark] = None
        while len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return ""

    @staticmethod
    def _identity(headers: Headers) -> bytes:
        """Return the id of a delivery, empty if there is none, or more than one."""
        found = {value for name, value in headers if name in _IDS}
        identity = found.pop() if len(found) == 1 else b""
        return identity if len(identity) <= _MAX_ID_BYTES else b""
