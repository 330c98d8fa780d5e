"""Queue of tasks for workers: put a task into it, check a queue file, and see to its fleet."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.plans import draft_in_words
from agent_workbench.api.trusted_repo import database_advice, settings_to_check, trusted_repo
from agent_workbench.bootstrap.repo_context import Say, find_repo
from agent_workbench.bootstrap.user_extensions import skill_folders
from agent_workbench.core.errors import PlanError, StorageError, UsageError
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.ports.repo_files import Plans
from agent_workbench.core.ports.task_queue import ENDED, ProjectQueue, QueuedTask, QueueState
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.skills import choosable
from agent_workbench.core.task_estimates import Needs
from agent_workbench.core.task_routing import unmet_needs
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.workers import Fleet
from agent_workbench.core.yaml_documents import DocumentError, decode_document
from agent_workbench.subjects.queue.wiring import (
    DEFAULT_PROJECT,
    check_unplanned,
    in_database,
    project_queue,
    read_definition,
    render_definition,
    worker_registry,
)

if TYPE_CHECKING:
    from agent_workbench.adapters.plans.queued_task import QueueFile
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ports.shared_state import WorkerRegistry
    from agent_workbench.core.settings import Settings


MAX_BYTES = 1_000_000
MOST_NAMES = 1000
NAME_CHARS = 40
INPUT_NAME = "input.yaml"
"""Name of a document without a file."""
_NAME_CHARS = 60
_REASON_CHARS = 300
_OUTSIDE_NAMES = re.compile(r"[^a-z0-9]+")


class QueuePlace(Struct, frozen=True):
    """A queue: its project, and the folder of all projects (None: `tasks/queue` of the repository)."""

    project: str = DEFAULT_PROJECT
    folder: Path | None = None


class AddedTask(Struct, frozen=True):
    """A task that was queued: its definition, its file or queue, and remarks about it.

    `known` is the same task as the queue has it already: then nothing was queued.
    """

    task: Task
    path: str
    remarks: tuple[str, ...] = ()
    known: QueuedTask | None = None


async def queue_words(invocation: Invocation, words: str, place: QueuePlace, say: Say) -> AddedTask:
    """Queue the task that the words ask for, with the scope and the checks that the code suggests.

    No model is asked. Raises `TrustError`, also in a command of the agent, and `UsageError` for words that are no task.
    """
    draft = await draft_in_words(invocation, words, say)
    added = await _put(invocation, render_definition(draft.task), _name_for(draft.task), place)
    return AddedTask(added.task, added.path, (*draft.remarks, *added.remarks))


async def queue_text(invocation: Invocation, data: bytes, name: str, place: QueuePlace) -> AddedTask:
    """Queue the task that a document called `name` spells; raise `PlanError` with line and column.

    The same document with an `id` of its own is queued once, whatever became of it. Raises `TrustError` for a command
    of the agent: a task in the folder counts as the user's own.
    """
    read = await _read_checked(invocation, data, name)
    unnamed = name == INPUT_NAME and not read.sets_id
    return await _put(invocation, decode_document(data), _name_for(read.task) if unnamed else read.task.id, place)


async def check_queue_file(invocation: Invocation, data: bytes, name: str) -> Task:
    """Return the task that a document called `name` spells, with its bounds; raise `PlanError` with line and column.

    Skills are those of the repository.
    """
    return (await _read_checked(invocation, data, name)).task


async def _read_checked(invocation: Invocation, data: bytes, name: str) -> "QueueFile":
    repo = await find_repo(invocation)
    try:
        text = decode_document(data)
    except DocumentError as fault:
        raise PlanError(fault.in_file(name), advice=fault.advice, page="reference/queue.md") from fault
    skills = choosable(await skill_folders(repo.root, (await settings_to_check(repo)).skills).list())
    return read_definition(text, TaskOrigin.LOCAL, name, skills)


async def read_queue_file(path: Path) -> bytes:
    """Return the content of a file; raise `StorageError`, and `UsageError` if it is missing."""
    from agent_workbench.system.atomic_files import storage_error
    from agent_workbench.system.folder_trees import read_regular

    try:
        return await asyncio.to_thread(lambda: read_regular(path, MAX_BYTES, follow=True))
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}", advice="put a task in words into quotes") from error
    except OSError as error:
        raise storage_error(f"{path} could not be read", error) from error


def _name_for(task: Task) -> str:
    """Return a file's name made of the first words of a task."""
    words = _OUTSIDE_NAMES.sub("-", task.description.lower())[:NAME_CHARS].strip("-")
    return words if words[:1].isalpha() else f"task-{words}".strip("-")


async def withdraw_task(invocation: Invocation, task: str, reason: str, place: QueuePlace) -> bool:
    """Take a task back; return False if it ended before. Raises `UsageError` if there is none, `TrustError`."""
    async with _own_queue(invocation, place) as queue:
        return await queue.withdraw(task, reason)


async def resume_task(invocation: Invocation, task: str, place: QueuePlace) -> QueueState:
    """Free a parked task and return the task's state; raise `UsageError` if there is none, `TrustError`."""
    async with _own_queue(invocation, place) as queue:
        return await queue.resume(task)


@asynccontextmanager
async def _own_queue(invocation: Invocation, place: QueuePlace) -> AsyncIterator[ProjectQueue]:
    """Yield a queue for a change by the user; raise `TrustError` in a command of the agent."""
    repo, settings = await trusted_repo(invocation)
    try:
        yield await project_queue(repo, settings, place.project, place.folder)
    finally:
        await repo.shared.close()


async def _put(invocation: Invocation, text: str, name: str, place: QueuePlace) -> AddedTask:
    repo = await find_repo(invocation)
    settings = await settings_to_check(repo)
    try:
        queue = await project_queue(repo, settings, place.project, place.folder)
        task, known = await _put_named(queue, text, name, repo.plans(settings))
        problem = "" if known is not None else await needs_problem(repo, settings, place.project, task.needs)
        remarks = (f"no worker can do it now: {problem}",) if problem else ()
        in_queue = known is not None or in_database(settings, place.folder)
        return AddedTask(task, queue.path if in_queue else f"{queue.path}/{task.id}.yaml", remarks, known)
    finally:
        await repo.shared.close()


async def _put_named(queue: ProjectQueue, text: str, name: str, plans: Plans) -> tuple[Task, QueuedTask | None]:
    """Queue a task under the id that it sets, else under its name or the first one with a number that is free.

    Returns it, and the task of the queue if that has the id already.
    """
    for number in range(1, MOST_NAMES):
        stem = name if number == 1 else f"{name}-{number}"
        read = read_definition(text, TaskOrigin.LOCAL, f"{stem}.yaml")
        await check_unplanned((read.task,), plans)
        if await queue.put(QueuedTask(read.task.id, text)):
            return read.task, None
        if read.sets_id:
            return read.task, await _known(queue, read.task, text)
    raise StorageError(f"{queue.path} has {MOST_NAMES} tasks named {name}", advice="give this one another `id`")


async def _known(queue: ProjectQueue, task: Task, text: str) -> QueuedTask:
    """Return the task of the queue that has an id already; raise `UsageError` if it is defined otherwise."""
    found = next((each for each in await queue.tasks() if each.id.casefold() == task.id.casefold()), None)
    if found is None:
        what = f"{queue.path} has a file {task.id}.yaml of another task, or of one that it does not know"
        raise UsageError(f"{task.id} is not queued: {what}", advice="give this one another `id`")
    if found.definition != text:
        advice = "give this one another `id`"
        raise UsageError(f"{known_text(found)}, with another definition than this one", advice=advice)
    return found


async def registered_fleet(invocation: Invocation, project: str) -> Fleet:
    """Return the registered workers of a project; raise `UsageError` without a database, `StorageError`."""
    async with _registry(invocation, project) as registry:
        return await registry.fleet()


async def drain_worker(invocation: Invocation, project: str, name: str, *, draining: bool) -> None:
    """Order a worker to take nothing new, or to take tasks again; raise `UsageError`, `TrustError`, `StorageError`."""
    async with _registry(invocation, project) as registry:
        await registry.drain(name, draining=draining)


async def remove_worker(invocation: Invocation, project: str, name: str) -> None:
    """Remove an offline worker; raise `UsageError`, `LockedError` for a living one, `TrustError`, `StorageError`."""
    async with _registry(invocation, project) as registry:
        await registry.remove(name)


async def needs_problem(repo: "RepoContext", settings: "Settings", project: str, needs: Needs) -> str:
    """Return why no registered worker meets the needs of a task; empty if one does, or if there are none.

    Where it cannot be known, because no database is set or it is away, that is said too.
    """
    if needs == Needs():
        return ""
    if not settings.database.active:
        return "its needs count for workers that share a database, and none is set (database.url_env)"
    try:
        fleet = await (await worker_registry(repo, settings, project or DEFAULT_PROJECT)).fleet()
    except StorageError as error:
        return f"its needs could not be compared with the workers: {error}"
    return unmet_needs(needs, fleet.workers)


@asynccontextmanager
async def _registry(invocation: Invocation, project: str) -> "AsyncIterator[WorkerRegistry]":
    repo, settings = await trusted_repo(invocation)
    if not settings.database.active:
        advice = "set database.url_env; `agent worker status` shows the workers of this machine"
        raise UsageError("no database is set, so no workers are registered", advice=await database_advice(repo, advice))
    try:
        yield await worker_registry(repo, settings, project or DEFAULT_PROJECT)
    finally:
        await repo.shared.close()


def known_text(task: QueuedTask) -> str:
    """Return what became of a task that is queued once more under the same id."""
    state = "running" if task.state is QueueState.CLAIMED else task.state
    where = f" on {sanitize_line(task.worker, _NAME_CHARS)}" if task.state is QueueState.CLAIMED and task.worker else ""
    why = f" ({sanitize_line(task.reason, _REASON_CHARS)})" if task.state is QueueState.FAILED and task.reason else ""
    return f"{task.id} is {state} already{where}{why}"


def again_text(task: QueuedTask) -> str:
    """Return how to have such a task done, or done again."""
    if task.state in ENDED:
        return "to run it again, queue it under another `id`"
    if task.state is QueueState.PARKED:
        freed = f"`agent worker resume {task.id}` frees it"
        return freed if task.exhausted else f"it waits for a person: `agent inbox` shows what for; {freed}"
    return f"`agent worker withdraw {task.id}` takes it back; to change it, queue it under another `id` then"
