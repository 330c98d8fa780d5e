"""Signatures of tasks and results. Rows are not trusted: what is not signed by a known key does not count."""

from msgspec import Struct

from agent_workbench.adapters.database.task_rows import MAX_BODY_BYTES, TaskRow, decode_body, encode_needs
from agent_workbench.core.ports.shared_state import Signatures
from agent_workbench.core.ports.task_queue import QueueState
from agent_workbench.core.signed import SignedPurpose, signed_message


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
