"""Rows of the table of tasks, read within bounds; their signed part and what a task needs, as bytes and text."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, ValidationError, convert
from msgspec.structs import fields
from psycopg.sql import SQL, Composed

from agent_workbench.adapters.database.connection import Connection
from agent_workbench.core.errors import UsageError
from agent_workbench.core.ids import NO_SESSION, SESSION_ID, SessionId
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.task_queue import MOST_ATTEMPTS, QueuedTask, QueueState
from agent_workbench.core.task_needs import Needs

MAX_BODY_BYTES = 1_100_000
"""Largest body of a row that is read: the largest queue file and what stands beside it."""

MAX_RESULT_BYTES = 4_000_000
MAX_REASON_CHARS = 2000
MAX_NAMES_BYTES = 100_000
# What a row may bring is cut by the server: a forged one cannot fill the memory.
COLUMNS = SQL(
    "id, CASE WHEN octet_length(body) <= {body} THEN body END, left(signature, 10000), priority, left(needs, 10000),"
    " CASE WHEN octet_length(array_to_string(depends_on, '')) <= {names} THEN depends_on[:1000] END, state,"
    " left(worker, 200), fence, left(session, 100), left(reason, {reason}),"
    " CASE WHEN octet_length(array_to_string(lost, '')) <= {names} THEN lost[:{lost}] END, left(routing, 20000), job"
).format(body=MAX_BODY_BYTES, names=MAX_NAMES_BYTES, reason=MAX_REASON_CHARS, lost=MOST_ATTEMPTS)
NEXT_FENCE = SQL("least(fence, 9223372036854775806) + 1")
"""The number of a new claim; a forged one that is the largest stops no other task."""
RESULT_COLUMNS = SQL(
    "fence, state, CASE WHEN octet_length(result) <= {most} THEN result ELSE '' END, left(result_signature, 10000)"
).format(most=MAX_RESULT_BYTES)


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


class TaskRow(Struct, frozen=True):
    """A row. `body` is None if it is too large, or if another column holds what no worker writes."""

    id: str
    body: bytes | None
    signature: str
    priority: int
    needs: str
    depends_on: tuple[str, ...]
    state: QueueState
    worker: str
    fence: int
    session: str
    reason: str
    lost: tuple[str, ...]
    routing: str
    job: int | None

    @classmethod
    def of(cls, values: tuple[object, ...]) -> "TaskRow":
        """Return the row with the values of `COLUMNS`.

        A value of another type, such as a list with NULL in it, is left out together with the body: the row does not
        count then, and keeps nobody from the others.
        """
        given = dict(zip(cls.__struct_fields__, values, strict=True))
        try:
            return convert(given, cls)
        except ValidationError:
            known = {each.name: each.type for each in fields(cls) if each.name in _EMPTY}
            return cls(body=None, **{name: _value(given[name], kind, _EMPTY[name]) for name, kind in known.items()})

    @property
    def begun(self) -> bool:
        """True if a worker had it before."""
        return bool(self.session or self.lost)

    @property
    def task(self) -> QueuedTask:
        """The row as a task, whether its signature counts or not. Its origin is the database, whatever it says."""
        signed = decode_body(self.body) if self.body is not None else None
        return QueuedTask(
            self.id,
            (signed or TaskBody("")).definition,
            self.priority,
            self.state,
            SessionId(self.session) if SESSION_ID.fullmatch(self.session) else NO_SESSION,
            self.reason,
            TaskOrigin.DATABASE,
            self.depends_on,
            self.worker,
            self.lost,
        )


_EMPTY: Mapping[str, object] = {
    **dict.fromkeys(("id", "signature", "needs", "worker", "session", "reason", "routing"), ""),
    "priority": 0,
    "depends_on": (),
    "state": QueueState.FAILED,
    "fence": 0,
    "lost": (),
    "job": None,
}


def _value(given: object, kind: Any, empty: object) -> Any:
    """Return a value of a column, or `empty` where it is of another type."""
    try:
        return convert(given, kind)
    except ValidationError:
        return empty


async def select(connection: Connection, query: Composed, parameters: Mapping[str, object]) -> list[TaskRow]:
    """Return the rows of a query for `COLUMNS`."""
    found = await connection.execute(query, parameters)
    return [TaskRow.of(each) for each in await found.fetchall()]
