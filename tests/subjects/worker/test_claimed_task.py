"""A claimed task whose lease ran out: the worker that comes late records and reports nothing."""

import asyncio
from pathlib import Path

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.postgres_queue import PostgresQueue
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.task_result import TaskResult
from agent_workbench.core.workers import WorkerLine
from agent_workbench.subjects.queue.worker_files_adapter import ReportOutbox
from agent_workbench.subjects.worker.claimed_task_calls import ClaimedTask, WorkerContext
from agent_workbench.subjects.worker.outage_calls import Outages, Pauses
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog
from agent_workbench.subjects.worker.report_calls import TaskReports
from tests.contracts.clocks import SetClock
from tests.fakes.signatures import FakeSignatures


class RecordingForge:
    """`Reporter` that keeps the results it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def started(self, task: Task, session: SessionId) -> str:
        return ""

    async def parked(self, task: Task, session: SessionId, item: InboxItem) -> str:
        return ""

    async def ended(self, result: TaskResult) -> str:
        self.told.append(result.status)
        return ""


async def test_a_worker_that_comes_late_leaves_no_result_to_report(tmp_path: Path, migrated_url: str) -> None:
    clock, forge, outbox = SetClock(), RecordingForge(), ReportOutbox(tmp_path / "reports")
    async with Database(migrated_url) as database:
        queue = PostgresQueue(database, "4b825dc", "default", FakeSignatures(), clock=clock)
        log = WorkerLog(list[WorkerLine]().append, clock, str)
        reports = TaskReports(forge, outbox, queue, log)
        host = LocalSessionHost(Invocation(tmp_path, {}, {}))
        context = WorkerContext(
            host,
            queue,
            "default",
            reports,
            log,
            Outages(log, Pauses(), "box"),
            clock,
            lambda: None,
            asyncio.Semaphore(1),
            waits=True,
        )
        await queue.put(QueuedTask("T-1", "this is no task"))
        late = await queue.claim("box", 30)
        assert late is not None
        clock.seconds += 30
        new = await queue.claim("den", 30)
        assert new is not None
        await queue.finish(new, QueueState.DONE, "done by den")
        end = await ClaimedTask(context, late).run()
        assert end.exit_code is ExitCode.LOCKED
        assert await asyncio.to_thread(outbox.pending) == ()
        assert forge.told == []
        assert [(each.state, each.reason) for each in await queue.tasks()] == [(QueueState.DONE, "done by den")]
        await queue.close()
