"""Status of a queue: its living workers, its tasks, and what today cost."""

import asyncio
from pathlib import Path

from agent_workbench.api.sessions.inbox import opened_inbox
from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.api.worker.worker_run import DEFAULT_PROJECT
from agent_workbench.bootstrap.stores import system_clock
from agent_workbench.bootstrap.task_queue import queue_folder, task_queue
from agent_workbench.bootstrap.worker import spending, worker_files
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState
from agent_workbench.core.queue.workers import ParkedTask, WorkerReport
from agent_workbench.views.inbox import view_inbox

_DAY_CHARS = len("2026-01-02")


async def worker_status(invocation: Invocation, project: str, folder: Path | None) -> WorkerReport:
    """Return the status of a project's queue; raise `StorageError` if it has no folder."""
    project = project or DEFAULT_PROJECT
    repo, settings = await trusted_repo(invocation)
    queue = await task_queue(repo, project, folder)
    if not await queue.exists():
        raise StorageError(f"Queue directory not found: {queue.path}", advice='make it, or `agent worker add "…"` does')
    files = await asyncio.to_thread(worker_files, repo, project)
    workers, tasks = await asyncio.to_thread(files.living), await queue.tasks()
    sessions = await asyncio.to_thread(repo.sessions, settings)
    now = system_clock().now()
    label, today = f"{queue_folder(project)}/", now[:_DAY_CHARS]
    costs = [
        each for each in await sessions.summaries() if each.label.startswith(label) and each.last[:_DAY_CHARS] == today
    ]
    worked_on = {job.task for worker in workers for job in worker.jobs}
    async with opened_inbox(invocation) as inbox:
        items = {each.session: each for each in await inbox.items()}
    return WorkerReport(
        queue.path,
        workers,
        _ids(tasks, QueueState.QUEUED),
        tuple(each for each in _ids(tasks, QueueState.CLAIMED) if each not in worked_on),
        tuple(_parked(each, items, now) for each in tasks if each.state is QueueState.PARKED),
        len(_ids(tasks, QueueState.DONE)),
        len(_ids(tasks, QueueState.FAILED)),
        sum(each.tokens for each in costs),
        await asyncio.to_thread(spending().spent_today),
    )


def _ids(tasks: tuple[QueuedTask, ...], state: QueueState) -> tuple[str, ...]:
    return tuple(each.id for each in tasks if each.state is state)


def _parked(task: QueuedTask, items: dict[SessionId, InboxItem], now: str) -> ParkedTask:
    item = items.get(task.session)
    if item is None:
        return ParkedTask(task.id, "", task.session, what=task.reason)
    (row,) = view_inbox([item], now)
    return ParkedTask(
        task.id, item.since, task.session, row.id, f"{row.kind}: {row.effect}", decided=item.decided is not None
    )
