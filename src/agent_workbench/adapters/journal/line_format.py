"""Format of one journal line: canonical JSON that holds the hash of the line before and its own."""

import json
import re
from hashlib import sha256

from msgspec import Struct

from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import SCHEMA_VERSION
from agent_workbench.core.events.codec import JsonObject

_KEYS = ["v", "seq", "time", "kind", "body", "prev", "hash"]
_TAIL = re.compile(rb'"hash":"([0-9a-f]{64})"}')
_HASH_CHARACTERS = 64
# The kind comes before the body, whose content is arbitrary.
_HEAD = re.compile(rb'\{"v":\d+,"seq":\d+,"time":"[^"]*","kind":"([a-z_]+)"')


class JournalLine(Struct, frozen=True):
    """Content of a line; `body` may name blobs."""

    seq: int
    time: str
    kind: str
    body: JsonObject
    prev: str
    hash: str


def encode_line(seq: int, time: str, kind: str, body: JsonObject, prev: str) -> tuple[bytes, str]:
    """Return a line with its newline, and its hash: SHA-256 over the line without newline, its hash left empty."""
    content = {"v": SCHEMA_VERSION, "seq": seq, "time": time, "kind": kind, "body": body, "prev": prev, "hash": ""}
    unhashed = _canonical(content).encode("ascii")
    digest = sha256(unhashed).hexdigest()
    return b'%s%s"}\n' % (unhashed[:-2], digest.encode("ascii")), digest


def peek_kind(raw: bytes) -> str:
    """Return the kind that a line claims, without decoding or proving it; empty if it claims none."""
    match = _HEAD.match(raw)
    return match[1].decode("ascii") if match else ""


def decode_line(raw: bytes) -> JournalLine:
    """Return the content of a line (without its newline); raise `JournalError` saying what does not fit."""
    content = _load(raw)
    version = content.get("v")
    if version != SCHEMA_VERSION:
        raise JournalError(
            f"schema version is {version!r}, this program reads {SCHEMA_VERSION}",
            advice="the journal may come from a newer version of Agent Workbench",
        )
    if list(content) != _KEYS:
        raise JournalError(f"keys are {', '.join(content)}; they should be {', '.join(_KEYS)}")
    match content:
        case {"seq": int(seq), "time": str(time), "kind": str(kind), "body": dict(body), "prev": str(prev)}:
            pass
        case _:
            raise JournalError("a key holds a value of the wrong type")
    stored = claimed_hash(raw)
    if stored is None:
        raise JournalError("hash is not one")
    found = sha256(raw[: -_HASH_CHARACTERS - 2] + raw[-2:]).hexdigest()
    if found != stored:
        raise JournalError(f"hash is {stored[:12]}…, its content has {found[:12]}…")
    return JournalLine(seq, time, kind, body, prev, stored)


def claimed_hash(raw: bytes) -> str | None:
    """Return the hash at the end of a line, right or wrong; None if there is none."""
    tail = _TAIL.fullmatch(raw, max(0, len(raw) - _HASH_CHARACTERS - 10))
    return tail[1].decode("ascii") if tail else None


def join_surrogates(text: str) -> str:
    """Return the text as JSON would read it back: a high and a low surrogate joined to one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def _canonical(content: object) -> str:
    return json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _load(raw: bytes) -> JsonObject:
    try:
        text = raw.decode("ascii")
        content: object = json.loads(text)
        canonical = _canonical(content)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"not JSON as the journal has it ({error})") from None
    if not isinstance(content, dict):
        raise JournalError("not a JSON object")
    if canonical != text:  # a repeated key, a number or an escape spelled in another way
        raise JournalError("not in canonical form")
    return content
