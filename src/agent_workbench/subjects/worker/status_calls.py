"""Status of a queue: its living workers, its tasks, and what today cost."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.stores import system_clock
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.task_queue import ProjectQueue, QueuedTask, QueueState
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.workers import ParkedTask, RunningTask, WorkerReport
from agent_workbench.subjects.inbox.calls import repo_inbox
from agent_workbench.subjects.inbox.view import view_inbox
from agent_workbench.subjects.queue.wiring import (
    in_database,
    project_queue,
    queue_folder,
    spending,
    worker_files,
    worker_registry,
)
from agent_workbench.subjects.worker.run_calls import DEFAULT_PROJECT, check_exists

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.inbox.calls import RepoInbox

_DAY_CHARS = len("2026-01-02")


async def worker_status(invocation: Invocation, project: str, folder: Path | None) -> WorkerReport:
    """Return the status of a project's queue; raise `StorageError` if it is not there."""
    project = project or DEFAULT_PROJECT
    repo, settings = await trusted_repo(invocation)
    try:
        queue = await project_queue(repo, settings, project, folder)
        await check_exists(queue)
        report = await _queue_report(repo, project, queue)
        if in_database(settings, folder):
            pause = (await (await worker_registry(repo, settings, project)).fleet()).pause
            report = replace(report, pause=pause, shared=True)
        sessions = await asyncio.to_thread(repo.sessions, settings)
        tokens = await _tokens_today(sessions, f"{queue_folder(project)}/")
        parked = await _parked_tasks(queue, await repo_inbox(invocation, repo.shared))
    finally:
        await repo.shared.close()
    backlog = await _backlog(repo, settings) if in_database(settings, folder) else ""
    dollars = await asyncio.to_thread(spending().spent_today)
    return replace(report, parked=parked, tokens_today=tokens, dollars_today=dollars, backlog=backlog)


async def _queue_report(repo: "RepoContext", project: str, queue: ProjectQueue) -> WorkerReport:
    """Return the part of the report that workers and queue tell."""
    files = await asyncio.to_thread(worker_files, repo, project)
    workers, tasks = await asyncio.to_thread(files.living), await queue.tasks()
    worked_on = {job.task for worker in workers for job in worker.jobs}
    claimed = [each for each in tasks if each.state is QueueState.CLAIMED and each.id not in worked_on]
    return WorkerReport(
        queue.path,
        workers,
        _ids(tasks, QueueState.QUEUED),
        tuple(each.id for each in claimed if each.origin is not TaskOrigin.DATABASE),
        done=len(_ids(tasks, QueueState.DONE)),
        failed=len(_ids(tasks, QueueState.FAILED)),
        withdrawn=len(_ids(tasks, QueueState.WITHDRAWN)),
        # Its lease says whether a worker of another machine is alive; one whose lease ran out is queued again.
        elsewhere=tuple(
            RunningTask(each.id, each.worker, each.session) for each in claimed if each.origin is TaskOrigin.DATABASE
        ),
        refused=tuple((each.id, each.reason) for each in tasks if each.state is QueueState.FAILED and not each.session),
    )


async def _backlog(repo: "RepoContext", settings: "Settings") -> str:
    from agent_workbench.bootstrap.shared_sessions import copy_backlog

    return (await asyncio.to_thread(copy_backlog, repo, repo.sessions_dir(settings))).text


async def _tokens_today(sessions: "SessionStore", label: str) -> int:
    today = system_clock().now()[:_DAY_CHARS]
    summaries = await sessions.summaries()
    return sum(each.tokens for each in summaries if each.label.startswith(label) and each.last[:_DAY_CHARS] == today)


async def _parked_tasks(queue: ProjectQueue, inbox: "RepoInbox") -> tuple[ParkedTask, ...]:
    items, now = {each.session: each for each in await inbox.items()}, system_clock().now()
    return tuple(_parked(each, items, now) for each in await queue.tasks(QueueState.PARKED))


def _ids(tasks: tuple[QueuedTask, ...], state: QueueState) -> tuple[str, ...]:
    return tuple(each.id for each in tasks if each.state is state)


def _parked(task: QueuedTask, items: dict[SessionId, InboxItem], now: str) -> ParkedTask:
    item = items.get(task.session)
    if item is None or task.exhausted:
        return ParkedTask(task.id, "", task.session, what=task.reason)
    (row,) = view_inbox([item], now)
    return ParkedTask(
        task.id, item.since, task.session, row.id, f"{row.kind}: {row.effect}", decided=item.decided is not None
    )
