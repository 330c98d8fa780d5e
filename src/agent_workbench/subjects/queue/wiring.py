"""Wiring of the queue, its definitions and plans, and of the workers that share it."""

import asyncio
import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.bootstrap.database import repository_key, shared_database
from agent_workbench.core.errors import DatabaseDownError, PlanError, StorageError, UsageError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import QUEUE_FOLDER, is_queued

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_workbench.adapters.llama_cpp.priced_model import SpendingLedger
    from agent_workbench.adapters.plans.queued_task import QueueFile
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.events import ModelAnswered
    from agent_workbench.core.history.summaries import SessionSummary
    from agent_workbench.core.plan import Task, TaskOrigin
    from agent_workbench.core.ports.repo_files import Plans
    from agent_workbench.core.ports.shared_state import WorkerRegistry
    from agent_workbench.core.ports.task_queue import ProjectQueue, QueuedTask
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.skills import SkillEntry
    from agent_workbench.core.state.session_state import SessionState
    from agent_workbench.core.task_estimates import Needs
    from agent_workbench.subjects.queue.folder_adapter import FolderQueue
    from agent_workbench.subjects.queue.plan_adapter import QueuedPlan
    from agent_workbench.subjects.queue.records_adapter import TaskFacts
    from agent_workbench.subjects.queue.worker_files_adapter import ReportOutbox, WorkerFiles


DEFAULT_PROJECT = "default"
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

EMBEDDED = "embedded llama.cpp"
"""Endpoint that answers of our own server for a model file have."""


async def project_queue(
    repo: "RepoContext", settings: "Settings", project: str = DEFAULT_PROJECT, folder: Path | None = None
) -> "ProjectQueue":
    """Return the queue of a project: in the shared database if one is set, else, or with `folder`, in a folder.

    Raises `UsageError` for a name that is no project's, `ConfigError` for a database without an address.
    """
    if not in_database(settings, folder):
        return await task_queue(repo, project, folder)
    from agent_workbench.bootstrap.database import database_queue

    queue_folder(project)
    return await database_queue(repo, settings, project, completed_task)


def in_database(settings: "Settings", folder: Path | None) -> bool:
    """Return True if the queues of the projects are in the shared database; a `folder` that is named goes first."""
    return folder is None and settings.database.active


def completed_task(task: "QueuedTask") -> "tuple[QueuedTask, Needs]":
    """Return a task with the id and the order that its definition has, and its needs.

    A text that is no task is queued as it is: the worker that gets it says so.
    """
    from agent_workbench.core.task_estimates import Needs

    try:
        read = read_definition(task.definition, task.origin, f"{task.id}.yaml")
    except PlanError:
        return task, Needs()
    depends_on = task.depends_on or read.task.depends_on
    priority = task.priority or read.priority
    return replace(task, id=read.task.id, priority=priority, depends_on=depends_on), read.task.needs


async def task_queue(repo: "RepoContext", project: str = DEFAULT_PROJECT, folder: Path | None = None) -> "FolderQueue":
    """Return the queue of a project in a folder; raise `UsageError` for a name that is no project's.

    `folder` holds the folders of the projects (None: `tasks/queue` of the repository).
    """
    from agent_workbench.bootstrap.stores import system_clock
    from agent_workbench.subjects.queue.files_adapter import QueueFiles
    from agent_workbench.subjects.queue.folder_adapter import FolderQueue
    from agent_workbench.subjects.queue.records_adapter import QueueRecords
    from agent_workbench.system.user_dirs import repo_key, state_dir

    checkout = await repo.repository.checkout_files()

    def opened() -> FolderQueue:
        root, parts = _place(repo.root, folder, queue_folder(project))
        below = "/".join(parts)
        return FolderQueue(
            QueueFiles(root, parts),
            QueueRecords(state_dir() / "queue" / repo_key(str(root)) / below.replace("/", "%")),
            system_clock(),
            definition_facts,
            lambda: checkout.tracked_in(below) if root == repo.root else _outside(root),
        )

    return await asyncio.to_thread(opened)


async def withdraw_tasks(
    repo: "RepoContext", settings: "Settings", names: "Sequence[str]", reason: str
) -> "Sequence[str]":
    """Take tasks back from the queue of the default project; return those that had ended. Raises `StorageError`."""
    queue = await project_queue(repo, settings)
    try:
        known = {each.id for each in await queue.tasks()}
        return [name for name in names if name in known and not await queue.withdraw(name, reason)]
    finally:
        await queue.close()


def _place(root: Path, folder: Path | None, standard: str) -> tuple[Path, tuple[str, ...]]:
    """Return the folder in which no link is followed, and the path of the queue below it."""
    if folder is None:
        return root, tuple(standard.split("/"))
    project = standard.rpartition("/")[2]
    absolute = Path(os.path.abspath(folder))  # noqa: PTH100 - a link below the repository is refused, not resolved
    if absolute.is_relative_to(root):
        return root, (*absolute.relative_to(root).parts, project)
    return absolute, (project,)


def _outside(folder: Path) -> frozenset[str] | None:
    """Return no names for a folder outside of every repository; None for one in a repository that is not asked."""
    held = any(os.path.lexists(each / ".git") for each in (folder, *folder.parents))
    return None if held else frozenset()


def queue_folder(project: str) -> str:
    """Return the folder of a project's queue, relative to the repo; raise `UsageError`."""
    if not _PROJECT.fullmatch(project) or ".." in project:
        raise UsageError(
            f"{project!r} is not a project's name",
            advice="it begins with a letter or digit and has at most 64 letters, digits, '.', '_' or '-'",
        )
    return f"{QUEUE_FOLDER}/{project}"


def read_definition(
    text: str, origin: "TaskOrigin", name: str, skills: "Sequence[SkillEntry] | None" = None
) -> "QueueFile":
    """Return the task in the text of a queue file called `name`; raise `PlanError` with file and line.

    With `skills` one that is not among them is a fault.
    """
    from agent_workbench.adapters.plans.queued_task import read_queued
    from agent_workbench.config.yaml_parser import compose_text

    return read_queued(text, origin, name, compose_text, skills)


def definition_facts(text: str, name: str) -> "TaskFacts":
    """Return what the queue of a folder reads of a definition; raise `PlanError`."""
    from agent_workbench.core.plan import TaskOrigin
    from agent_workbench.subjects.queue.records_adapter import TaskFacts

    read = read_definition(text, TaskOrigin.LOCAL, name)
    return TaskFacts(read.priority, read.task.depends_on, read.task.id, read.sets_id)


def render_definition(task: "Task") -> str:
    """Return the text of a queue file for a new task, which is named by its file."""
    from agent_workbench.adapters.plans.queued_task import render_queued

    return render_queued(task)


def dispatched_definition(task: "Task") -> str:
    """Return the text of a queue file for a task of an approved plan; raise `PlanError` if YAML cannot hold it."""
    from agent_workbench.adapters.plans.queued_task import render_dispatched

    text = render_dispatched(task)
    read = read_definition(text, task.origin, f"{task.id}.yaml").task
    if read != task:
        raise PlanError(f"{task.id} cannot be written as a queue file", advice="change the words of the task")
    return text


def queued_plan(task: "QueuedTask", project: str = DEFAULT_PROJECT) -> "QueuedPlan":
    """Return the plan of the session that works on a queued task; raise `PlanError` if its text is no task."""
    from agent_workbench.core.plan import Plan
    from agent_workbench.subjects.queue.plan_adapter import QueuedPlan

    name = f"{task.id}.yaml"
    read = read_definition(task.definition, task.origin, name).task
    definition = replace(read, depends_on=tuple(map(TaskId, task.depends_on)) or read.depends_on)
    return QueuedPlan(Plan((definition,)), str(Path(queue_folder(project)) / name))


async def check_unplanned(tasks: "Sequence[Task]", plans: "Plans") -> None:
    """Raise `PlanError` for a queued task with the id of a task of the plan.

    Their branches have the same name: a task of the plan that depends on the other would begin with the queued one's
    commit, whoever queued it.
    """
    try:
        planned = {task.id.casefold() for task in (await plans.read()).tasks}
    except (PlanError, StorageError):
        return  # without a plan nothing depends on a commit
    for task in tasks:
        if task.id.casefold() in planned:
            advice = "give the queued task another `id`, or its file another name"
            raise PlanError(f"the plan has a task {task.id} too", advice=advice)


async def session_plans(state: "SessionState", plans: "Plans", *, shared: bool) -> "Plans":
    """Return the plan of a session: `plans`, or what its journal has.

    The journal's counts where the session works on a queued task, and, in a session that is `shared` with other
    machines, where this machine's plan lacks the task that is open.
    """
    if is_queued(state.plan_path) or (shared and await _lacks_open_task(state, plans)):
        from agent_workbench.subjects.queue.plan_adapter import QueuedPlan

        return QueuedPlan(state.plan, state.plan_path)
    return plans


async def _lacks_open_task(state: "SessionState", plans: "Plans") -> bool:
    if state.run is None or not state.unfinished or not state.plan_path:
        return False
    try:
        return state.run.task not in {task.id for task in (await plans.read()).tasks}
    except PlanError:
        return True


async def is_withdrawn(repo: "RepoContext", settings: "Settings", summary: "SessionSummary") -> bool:
    """Return True if a session works on a queued task that was withdrawn, so that no worker continues it.

    Not for one that somebody has open, or made by a fork, and not while the database does not answer.
    """
    if not summary.queued or summary.holder or summary.parent is not None:
        return False
    path = PurePosixPath(summary.label)
    try:
        queue = await project_queue(repo, settings, path.parent.name)
        return await queue.withdrew(path.stem, summary.id)
    except (UsageError, DatabaseDownError):
        return False


def worker_files(repo: "RepoContext", project: str) -> "WorkerFiles":
    """Return the states of the living workers of a project."""
    from agent_workbench.subjects.queue.worker_files_adapter import WorkerFiles
    from agent_workbench.system.user_dirs import repo_key, state_dir

    return WorkerFiles(state_dir() / "workers" / repo_key(str(repo.root)) / project)


def report_outbox(repo: "RepoContext", project: str) -> "ReportOutbox":
    """Return the results of a project's tasks that are still to be reported."""
    from agent_workbench.subjects.queue.worker_files_adapter import ReportOutbox
    from agent_workbench.system.user_dirs import repo_key, state_dir

    return ReportOutbox(state_dir() / "reports" / repo_key(str(repo.root)) / project)


def spending() -> "SpendingLedger":
    """Return the ledger of what paid endpoints cost each day."""
    from agent_workbench.adapters.llama_cpp.priced_model import SpendingLedger
    from agent_workbench.system.user_dirs import state_dir

    return SpendingLedger(state_dir())


def task_commits(repo: "RepoContext", settings: "Settings") -> "Callable[[TaskId], Awaitable[str]] | None":
    """Return what tells the commit that the git remote has of a task; None without a remote."""
    from agent_workbench.bootstrap.database import session_refs

    return session_refs(repo, settings).task_commit if settings.database.remote else None


async def worker_registry(repo: "RepoContext", settings: "Settings", project: str) -> "WorkerRegistry":
    """Return the registered workers of a project's queue in the shared database; raise `ConfigError`, `RepoError`."""
    from agent_workbench.adapters.database.registry import DatabaseRegistry

    return DatabaseRegistry(shared_database(repo, settings.database), await repository_key(repo), project)


async def worker_names(repo: "RepoContext", project: str) -> "WorkerFiles":
    """Return the names that living workers of this machine have in a project's queue, of whichever clone they are."""
    from agent_workbench.subjects.queue.worker_files_adapter import WorkerFiles
    from agent_workbench.system.user_dirs import state_dir

    return WorkerFiles(state_dir() / "workers" / await repository_key(repo) / project)


def recorded_answers(repo: "RepoContext", settings: "Settings") -> "Sequence[ModelAnswered]":
    """Return the answers of models in this repository's newest sessions, the oldest first. Blocks."""
    from agent_workbench.adapters.journal.session_list import past_answers

    return tuple(past_answers(repo.sessions_dir(settings)))[::-1]
