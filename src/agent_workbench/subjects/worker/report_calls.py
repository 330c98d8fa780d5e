"""Reports of what a worker does, to the place where a task came from. A report that fails is logged and sent again."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from agent_workbench.core.errors import StorageError, error_text
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.task_queue import ENDED, TaskQueue
from agent_workbench.core.task_result import TaskResult
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog

if TYPE_CHECKING:  # loaded by the worker alone
    from agent_workbench.subjects.queue.worker_files_adapter import ReportOutbox


class Reporter(Protocol):
    """Place where tasks come from. No method raises: each returns a sentence about what failed, or an empty text.

    Each may be repeated after a crash and then changes nothing.
    """

    async def started(self, task: Task, session: SessionId) -> str:
        """Report that a session works on the task."""

    async def parked(self, task: Task, session: SessionId, item: InboxItem) -> str:
        """Report what waits for a person."""

    async def ended(self, result: TaskResult) -> str:
        """Report a result."""


class TaskReports:
    """Sends reports and logs what fails. Results wait in `outbox` until they were reported."""

    def __init__(self, reporter: Reporter | None, outbox: "ReportOutbox", queue: TaskQueue, log: WorkerLog) -> None:
        """Report to `reporter` (None: nowhere) what `queue` has recorded."""
        self._reporter = reporter
        self._outbox = outbox
        self._queue = queue
        self._log = log

    async def started(self, task: Task, session: SessionId) -> None:
        """Report that a session works on the task."""
        if self._reporter is not None:
            self._tell(await self._reporter.started(task, session), task.id, session)

    async def parked(self, task: Task, session: SessionId, item: InboxItem) -> None:
        """Report what waits for a person."""
        if self._reporter is not None:
            self._tell(await self._reporter.parked(task, session, item), task.id, session)

    async def expect(self, result: TaskResult) -> None:
        """Keep a result that is about to be recorded, so that a crash loses no report; raise `StorageError`."""
        if self._reporter is not None:
            await asyncio.to_thread(self._outbox.put, result)

    async def ended(self, result: TaskResult) -> None:
        """Report a recorded result."""
        if self._reporter is None:
            return
        with suppress(StorageError):  # `send_again` asks the queue then
            await asyncio.to_thread(self._outbox.confirm, result)
        trouble = await self._reporter.ended(result)
        self._tell(trouble, result.task, result.session)
        if not trouble:
            try:
                await asyncio.to_thread(self._outbox.drop, result)
            except StorageError as error:  # reported once more at the next start, which changes nothing there
                self._tell(error_text(error), result.task, result.session)

    async def forget(self, result: TaskResult) -> None:
        """Drop a result that the queue refused: another worker has the task."""
        with suppress(StorageError):  # `send_again` finds that it was not recorded
            await asyncio.to_thread(self._outbox.drop, result)

    async def send_again(self) -> None:
        """Report the results that an earlier worker could not; drop those that the queue did not record."""
        try:
            pending = await asyncio.to_thread(self._outbox.pending)
            tasks = () if all(confirmed for _, confirmed in pending) else await self._queue.tasks()
        except StorageError as error:
            self._log.caution("not_reported", error_text(error))
            return
        by_id = {each.id: each for each in tasks}
        by_session = {each.session: each for each in tasks if each.session}
        for result, confirmed in pending:
            # An earlier version had tasks in the queue under another name than the id that their results have.
            task = by_session.get(result.session) or by_id.get(result.task)
            recorded = task is not None and (task.session, str(task.state)) == (result.session, str(result.status))
            if confirmed or recorded:
                await self.ended(result)
            elif task is None or task.state in ENDED:
                self._tell("another result of it was recorded; this one is dropped", result.task, result.session)
                await self.forget(result)
            # Else nobody recorded its end yet: whoever does reports it.

    def _tell(self, trouble: str, task: str, session: SessionId) -> None:
        if trouble:
            self._log.caution("not_reported", trouble, task, session)
