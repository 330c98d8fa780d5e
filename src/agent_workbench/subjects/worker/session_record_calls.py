"""Records of a claimed task's session: its events as lines of the log, and the state that its journal tells."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_workbench.api.sessions.session_handle import LocalSession
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.errors import (
    ConfigError,
    ExitCode,
    JournalError,
    ModelError,
    StorageError,
    UsageError,
    WorkbenchError,
    error_text,
)
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import Task
from agent_workbench.subjects.worker.outage_calls import Cause, Outages
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog

if TYPE_CHECKING:  # loaded with the first session
    from agent_workbench.core.events import ModelAnswered
    from agent_workbench.core.state.session_state import SessionState


async def log_events(
    session: LocalSession,
    task: str,
    log: WorkerLog,
    outages: Outages,
    answered: "Callable[[ModelAnswered], None] | None" = None,
) -> None:
    """Log the events of a session until it ends; what it gets done shows which outages are over.

    How the session begins, ends and fails to go on is of little interest: the worker says what became of the task.
    `answered` is called with each answer of a model.
    """
    from agent_workbench.core.events import (
        ModelAnswered,
        SessionLeft,
        SessionResumed,
        TaskFinished,
        TaskStarted,
        TroubleMet,
        WorkEvent,
    )
    from agent_workbench.core.events.log_lines import log_line

    async for recorded in session.events(session.opened_seq):
        if isinstance(recorded.event, ModelAnswered):
            outages.over(Cause.MODEL)
            if answered is not None:
                answered(recorded.event)
        if isinstance(recorded.event, ModelAnswered | TaskStarted | WorkEvent):
            outages.over(Cause.DISK, Cause.LOCK, task=task)
        told = isinstance(recorded.event, SessionResumed | SessionLeft | TroubleMet | TaskFinished)
        if line := log_line(recorded.event):
            (log.trace if told else log.note)("session", line, task, session.session)


async def recorded_state(host: LocalSessionHost, session: SessionId) -> "SessionState":
    """Return the state that a session's journal tells; raise `JournalError`, `StorageError`."""
    from agent_workbench.core.fold import fold_all

    repo = await host.repo()
    settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
    store = await asyncio.to_thread(repo.sessions, settings)
    return await asyncio.to_thread(fold_all, await store.read(session))


class MissingSession(WorkbenchError):
    """The session of a claim is neither here nor in the shared database."""

    exit_code = ExitCode.USAGE


async def task_state(host: LocalSessionHost, session: SessionId, task: Task, *, exactly: bool) -> "SessionState":
    """Return the state of the session in which a task was begun.

    Raises `MissingSession`, and `JournalError` if the session worked on another task, or `exactly` on one that is
    defined otherwise: a row of a database may name any session.
    """
    try:
        state = await recorded_state(host, session)
    except UsageError as error:
        raise MissingSession(str(error), advice=error.advice) from error
    if state.run is not None and state.run.task != task.id:
        raise JournalError(f"session {session} worked on {state.run.task}, not on {task.id}")
    if exactly and state.run is not None and not state.run.definition.defined_as(task):
        raise JournalError(
            f"session {session} worked on another {task.id} than the one that is queued",
            advice=f"somebody changed the queue or the session; `agent sessions verify {session}` tells more",
        )
    return state


Committed = Callable[[TaskId], Awaitable[str]]
"""Returns the commit that the git remote has of a task."""


async def check_not_done(committed: Committed | None, task: TaskId, session: SessionId) -> None:
    """Raise `JournalError` if the remote has a commit of a task that no session began, as the queue says.

    So what was done is not done again, whoever changed its row. Where the remote does not answer, its branch is not
    moved either: a push leaves it as it is.
    """
    commit = ""
    if committed is not None and not session:
        with suppress(StorageError, ConfigError):
            commit = await committed(task)
    if commit:
        raise JournalError(
            f"the git remote has agent/{task} at {commit[:10]}: the task was done before, and its row was changed",
            advice=f"`agent verify {commit[:10]}` tells who did it; queue other work under another id",
        )


async def model_trouble(host: LocalSessionHost) -> str:
    """Return why the executor's model cannot be asked now, empty if it can; no session is opened for it."""
    repo = await host.repo()
    settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
    try:
        model = await asyncio.to_thread(repo.model, settings, lambda _: None)
        try:
            await model.observe()
        finally:
            await model.close()
    except ModelError as error:
        return error_text(error)
    return ""
