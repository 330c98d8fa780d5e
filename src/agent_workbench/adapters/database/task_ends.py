"""Ends of tasks in the database: results with their signatures."""

from psycopg.sql import SQL

from agent_workbench.adapters.database.queue_context import QueueContext, stored
from agent_workbench.adapters.database.signed_tasks import TaskSigner
from agent_workbench.adapters.database.task_rows import COLUMNS, MAX_REASON_CHARS, RESULT_COLUMNS, select
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState
from agent_workbench.core.task_result import TaskResult, decode_result

MOST_CHECKED = 200
"""Newest tasks whose signatures one check judges."""
_ENDED = SQL(
    "SELECT {columns} FROM agent_tasks WHERE queue = %(queue)s AND id = %(task)s AND state IN ('done', 'failed')"
).format(columns=RESULT_COLUMNS)


_NEWEST = SQL(
    "SELECT {columns} FROM agent_tasks WHERE queue = %(queue)s ORDER BY changed_at DESC LIMIT %(most)s"
).format(columns=COLUMNS)
_COUNT = SQL("SELECT count(*) FROM agent_tasks WHERE queue = %(queue)s")


class TaskEnds:
    """Reads the ends of tasks. One that is not signed by a known worker does not count."""

    def __init__(self, context: QueueContext, signer: TaskSigner) -> None:
        self._context = context
        self._signer = signer

    async def result(self, task: str) -> TaskResult | None:
        """Return the result of an ended task, None if it has none; raise `StorageError` if it does not count."""
        document, problem, _ = await self._ended(task)
        if problem:
            raise StorageError(f"the result of {task} in {self._context.path} does not count: {problem}")
        return decode_result(document, f"the result of {task}") if document else None

    async def problem(self, task: str) -> tuple[str, bool]:
        """Return why the end of a task does not count (empty: it does, or there is none), and if it may elsewhere."""
        _, problem, signature = await self._ended(task)
        if not problem:
            return "", False
        return f"the end of {task} does not count: {problem}", await self._signer.result_key_is_unknown(signature)

    async def end_problem(self, task: QueuedTask) -> str:
        """Return why state or reason of an ended task does not count; empty if both do, or if it did not end."""
        if task.state not in {QueueState.DONE, QueueState.FAILED}:
            return ""
        document, problem, _ = await self._ended(task.id)
        if problem or not document:
            return problem
        try:
            signed = decode_result(document, "its result")
        except StorageError as error:
            return str(error)
        reason = stored(signed.reason)[:MAX_REASON_CHARS]
        return "" if task.reason == reason else "its reason is not the one that was signed"

    async def uncounted(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        """Return the number of tasks, and those of the newest that do not count, each with the reason."""
        parameters = {**self._context.parameters(), "most": MOST_CHECKED}
        async with self._context.database.connection() as connection:
            row = await (await connection.execute(_COUNT, parameters)).fetchone()
            rows = await select(connection, _NEWEST, parameters)
        found = []
        for each in rows:
            if each.state in {QueueState.DONE, QueueState.FAILED}:
                _, problem, _ = await self._ended(each.id)
            else:
                problem = await self._signer.task_problem(each)
            if problem:
                found.append((each.id, problem))
        return (int(str(row[0])) if row is not None else 0), tuple(found)

    async def _ended(self, task: str) -> tuple[str, str, str]:
        """Return the result of an ended task (empty: none), why its end does not count, and its signature."""
        async with self._context.database.connection() as connection:
            row = await (await connection.execute(_ENDED, self._context.parameters(task))).fetchone()
        if row is None:
            return "", "", ""
        fence, state, document, signature = row
        problem = await self._signer.result_problem(
            task, int(str(fence)), QueueState(str(state)), str(document), str(signature)
        )
        return str(document), problem, str(signature)
