"""Rows of the table of tasks, read within bounds. What is not signed by a known key does not count."""

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
from agent_workbench.core.ports.shared_state import Signatures
from agent_workbench.core.ports.task_queue import MOST_ATTEMPTS, QueuedTask, QueueState
from agent_workbench.core.signed import SignedPurpose, signed_message
from agent_workbench.core.task_estimates import Needs

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


def task_message(queue: str, task: str, body: bytes) -> bytes:
    """Return what is signed of a task: in another queue or under another id it does not count."""
    return signed_message(SignedPurpose.TASK, queue, task, body)


def result_message(queue: str, task: str, fence: int, state: QueueState, document: str) -> bytes:
    """Return what is signed of a result: it counts for this end of this claim alone."""
    return signed_message(SignedPurpose.RESULT, queue, task, fence, state, document)


class TaskSigner(Struct, frozen=True):
    """Signs tasks and results of one queue, and says why those of a row do not count."""

    queue: str
    signatures: Signatures

    async def sign_task(self, task: str, body: bytes) -> str:
        """Return the signature of a task; raise `SigningError`."""
        return await self.signatures.sign(SignedPurpose.TASK, task_message(self.queue, task, body))

    async def task_key_is_unknown(self, row: TaskRow) -> bool:
        """Return True if a task is signed by a key that may put none here: another machine may know it."""
        return row.body is not None and await self.signatures.key_is_unknown(SignedPurpose.TASK, row.signature)

    async def result_key_is_unknown(self, signature: str) -> bool:
        """Return True if a result is signed by a key that may sign none here."""
        return await self.signatures.key_is_unknown(SignedPurpose.RESULT, signature)

    async def task_problem(self, row: TaskRow) -> str:
        """Return why the row of a task does not count, empty if it does."""
        if row.body is None:
            return f"it has more than {MAX_BODY_BYTES:,} bytes, or columns that no worker writes"
        message = task_message(self.queue, row.id, row.body)
        if problem := await self.signatures.problem(SignedPurpose.TASK, message, row.signature):
            return problem
        signed = decode_body(row.body)
        if signed is None:
            return "its signed text is no task"
        if (row.priority, row.needs, row.depends_on) != (
            signed.priority,
            encode_needs(signed.needs),
            signed.depends_on,
        ):
            return "its columns are not those that were signed"
        return ""

    async def sign_result(self, task: str, fence: int, state: QueueState, document: str) -> str:
        """Return the signature of a task's result; raise `SigningError`."""
        return await self.signatures.sign(
            SignedPurpose.RESULT, result_message(self.queue, task, fence, state, document)
        )

    async def result_problem(self, task: str, fence: int, state: QueueState, document: str, signature: str) -> str:
        """Return why a result does not count, empty if it does."""
        message = result_message(self.queue, task, fence, state, document)
        return await self.signatures.problem(SignedPurpose.RESULT, message, signature)
