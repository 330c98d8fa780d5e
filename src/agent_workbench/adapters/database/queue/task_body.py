"""The signed part of a task's row, and what a task needs, as bytes and text."""

import msgspec
from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.plan.needs import Needs

MAX_BODY_BYTES = 1_100_000
"""Largest body of a row that is read: the largest queue file and what stands beside it."""


class TaskBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The signed part of a row. `needs` and `priority` are what the definition says, or the role's model."""

    definition: str
    priority: int = 0
    needs: Needs = Needs()
    depends_on: tuple[str, ...] = ()


def encode_body(body: TaskBody) -> bytes:
    """Return the bytes of a body as they are signed and stored; raise `UsageError` for text that is not UTF-8."""
    try:
        encoded = msgspec.json.encode(body)
    except UnicodeEncodeError as error:
        raise UsageError("the text of the task holds half a character (a lone surrogate)") from error
    if len(encoded) > MAX_BODY_BYTES:
        raise UsageError(f"the task has {len(encoded):,} bytes; the queue takes {MAX_BODY_BYTES:,}")
    return encoded


def decode_body(data: bytes) -> TaskBody | None:
    """Return the body in some bytes, None if it is none."""
    try:
        return msgspec.json.decode(data, type=TaskBody)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def encode_needs(needs: Needs) -> str:
    """Return needs as the text that stands in a row; equal needs have equal texts."""
    in_order = Needs(needs.gpu_vram_gb, needs.cores, tuple(sorted(needs.models)), tuple(sorted(needs.tags)))
    return "" if needs == Needs() else msgspec.json.encode(in_order).decode()


def decode_needs(text: str) -> Needs | None:
    """Return the needs in a row's text, None if it has none; forged ones only mislead the routing."""
    try:
        return msgspec.json.decode(text, type=Needs) if text else Needs()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
