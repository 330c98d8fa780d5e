"""A claimed task: worked on in a session of its own, until it is over, parked, or the worker stops."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.errors import (
    ConfigError,
    DatabaseDownError,
    ExitCode,
    JournalError,
    LockedError,
    ModelError,
    PlanError,
    SigningError,
    StorageError,
    UsageError,
    WorkbenchError,
    error_text,
)
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import NO_SESSION, SessionId, TaskId
from agent_workbench.core.inbox import InboxFilter
from agent_workbench.core.intents import Leave, PauseTask
from agent_workbench.core.plan import Task, TaskOrigin, TaskStatus
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim, TaskQueue
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.task_result import ENDS, TaskResult
from agent_workbench.core.workers import WorkerJob
from agent_workbench.subjects.audit.calls import share_audit
from agent_workbench.subjects.queue.wiring import queued_plan, read_definition
from agent_workbench.subjects.worker.loop_calls import LEASE_SECONDS, TAKEN
from agent_workbench.subjects.worker.outage_calls import Cause, Outages
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog
from agent_workbench.subjects.worker.report_calls import TaskReports
from agent_workbench.subjects.worker.session_record_calls import (
    MissingSession,
    check_not_done,
    log_events,
    model_trouble,
    recorded_state,
    task_state,
)
from agent_workbench.views.reports.task_report import task_result

if TYPE_CHECKING:  # loaded with the first session
    from agent_workbench.api.sessions.session_handle import LocalSession
    from agent_workbench.core.events import ModelAnswered
    from agent_workbench.core.state.session_state import SessionState
    from agent_workbench.subjects.queue.plan_adapter import QueuedPlan

MOST_ATTEMPTS = 3
"""Attempts at a task that the workspace refuses, before it counts as failed."""
# Words of git about a lock of its own: another program has the repository for a moment.
_LOCK_WORDS = (".lock'", "cannot lock ref", "could not lock")
_CAUSES = {"model": Cause.MODEL, "storage": Cause.DISK, "locked": Cause.LOCK}
# A further attempt ends in the same way.
_FINAL = (PlanError, ConfigError, UsageError, JournalError)


class WorkerContext(Struct):
    """Parts that the claimed tasks of a worker share. `waits`: an outage is waited for, instead of ending the attempt.

    `changed` is called when a task begins to wait, or goes on, `answered` with each answer of a model. `slots` bounds
    the sessions that are open at once; a task that waits has none. `committed` returns the commit that the git remote
    has of a task (None: there is no such remote).
    """

    host: LocalSessionHost
    queue: TaskQueue
    project: str
    reports: TaskReports
    log: WorkerLog
    outages: Outages
    clock: Clock
    changed: Callable[[], None]
    slots: asyncio.Semaphore
    waits: bool
    answered: "Callable[[ModelAnswered], None] | None" = None
    lease_seconds: float = LEASE_SECONDS
    committed: "Callable[[TaskId], Awaitable[str]] | None" = None


class _Stopped(Exception):
    """An attempt was stopped by a `cause` outside of the task; None: by its workspace."""

    def __init__(self, cause: Cause | None, end: SessionEnd) -> None:
        super().__init__(end.reason)
        self.cause = cause
        self.end = end


class ClaimedTask:
    """One claimed task. `run` may be called once."""

    def __init__(self, context: WorkerContext, claim: TaskClaim) -> None:
        self.claim = claim
        self.session = claim.task.session
        self._context = context
        self._since = context.clock.now()
        self._waits_for = ""
        self._open: LocalSession | None = None
        self._stopping = asyncio.Event()
        self._lost = ""
        self._shared = claim.task.origin is TaskOrigin.DATABASE

    @property
    def job(self) -> WorkerJob:
        """The task as `agent worker status` shows it."""
        return WorkerJob(self.claim.task.id, self._since, self.session, self._waits_for)

    def stop(self, *, now: bool = False) -> None:
        """Have the session end between two steps; `now`: at once."""
        self._stopping.set()
        if self._open is not None:
            self._open.submit(Leave("the worker was stopped") if now else PauseTask())

    def lose(self, why: str = TAKEN) -> None:
        """Leave the session: another worker has claimed the task, or it was withdrawn."""
        self._lost = why
        self.stop(now=True)

    async def run(self) -> SessionEnd:
        """Work until the task is over or parked, or the worker stops; return what became of it.

        Raises the error that keeps any task from being worked on.
        """
        context, name, attempt = self._context, self.claim.task.id, 0
        verb = "continues" if self.session else "begins"
        context.log.note("claimed", f"{verb} (claim {self.claim.fence})", name, self.session)
        while not self._stopping.is_set():
            try:
                async with context.slots:
                    return await self._attempt(last=attempt + 1 >= MOST_ATTEMPTS)
            except _Stopped as found:
                stopped = found
            except (StorageError, SigningError) as error:
                stopped = _stopped(error)
            if self._stopping.is_set():
                break
            if stopped.cause and not context.waits:
                context.log.caution("stopped", stopped.end.reason, name, self.session)
                return stopped.end
            attempt = await self._wait(stopped, attempt)
        return self._interrupted()

    async def _wait(self, stopped: _Stopped, attempt: int) -> int:
        """Wait for the end of a cause; return the number of the next attempt."""
        outages, name, reason = self._context.outages, self.claim.task.id, stopped.end.reason
        self._waits_for = stopped.cause or "workspace"
        self._context.changed()
        if stopped.cause is None:
            await outages.retry(reason, attempt, name)
            return attempt + 1
        while reason:
            await outages.wait(stopped.cause, reason, attempt, name)
            attempt += 1
            asks = stopped.cause is Cause.MODEL and not self._stopping.is_set()
            reason = await model_trouble(self._context.host) if asks else ""
        return attempt

    async def _attempt(self, *, last: bool) -> SessionEnd:
        """Work in a session to its end; raise `_Stopped`, `StorageError` if it has to be continued later.

        The `last` attempt at a task that only its own workspace stops makes it a failed one.
        """
        try:
            return await self._attempt_once()
        except _Stopped as stopped:
            if stopped.cause is None and last:
                return await self._fail(stopped.end)
            raise
        except MissingSession as error:
            end = SessionEnd(error.exit_code, error_text(error))
            if not self._shared:
                return await self._fail(end)
            if not last:
                raise _Stopped(None, end) from error
            self.session = NO_SESSION  # whoever began it is gone, and copied nothing
            return await self._attempt_once()

    async def _attempt_once(self) -> SessionEnd:
        try:
            plan = queued_plan(self.claim.task, self._context.project)
            (task,) = (await plan.read()).tasks
            before = self.session and await task_state(self._context.host, self.session, task, exactly=self._shared)
            if before and _is_over(before):
                return await self._record(_result(before))
            await check_not_done(self._context.committed, task.id, self.session)
            session = await self._open_session(plan, task)
        except LockedError as error:
            if self._shared:  # another machine has the session until its lease runs out
                raise _stopped(error) from error
            # A person has the session open: they may decide at their own screen.
            return await self._park(SessionEnd(ExitCode.PARKED, str(error)))
        except ModelError as error:
            raise _stopped(error) from error
        except (PlanError, JournalError, UsageError) as error:
            return await self._fail(SessionEnd(error.exit_code, error_text(error)))
        try:
            end = await self._end_of(session)
        except WorkbenchError as error:
            if isinstance(error, _FINAL) and not isinstance(error, LockedError):
                return await self._fail(SessionEnd(error.exit_code, error_text(error)))
            raise _stopped(error) from error
        return await self._settle(end, task)

    async def _open_session(self, plan: "QueuedPlan", task: Task) -> "LocalSession":
        """Open the claim's session, or a new one, which the claim names before anything is done in it."""
        context = self._context
        query = SessionQuery(self.session, fresh=not self.session, tasks=(task.id,))

        async def note(session: SessionId) -> None:
            await self._held(context.queue.renew(self.claim, context.lease_seconds, session))
            self.session = session

        repo = (await context.host.repo()).with_plans(plan)
        opened = await context.host.open_unattended(repo, query, noted=note, routed=self.claim.routing)
        self._open, self._waits_for = opened, ""
        if self._stopping.is_set():
            self.stop()
        context.changed()
        await context.reports.started(task, self.session)
        return opened

    async def _end_of(self, session: "LocalSession") -> SessionEnd:
        """Log the events of a session and wait for its end; raise the error that ended it."""
        context = self._context
        events = log_events(session, self.claim.task.id, context.log, context.outages, context.answered)
        logging = asyncio.create_task(events)
        try:
            return await session.wait()
        finally:
            self._open = None
            await logging

    async def _settle(self, end: SessionEnd, task: Task) -> SessionEnd:
        """Finish or park a task after its session ended; raise `_Stopped` if it goes on later."""
        state = await recorded_state(self._context.host, self.session)
        if _is_over(state):
            return await self._record(_result(state))
        if end.exit_code is ExitCode.INTERRUPTED:
            return self._interrupted()
        if end.exit_code is ExitCode.PARKED:
            return await self._park(end, task)
        raise _Stopped(_cause(state) or _lock_cause(end.reason), end)

    def _interrupted(self) -> SessionEnd:
        """Return the end of a task that the next worker continues."""
        if self._lost:
            return SessionEnd(ExitCode.LOCKED, f"{self.claim.task.id} {self._lost}")
        self._context.log.note("stopped", "the next worker continues it", self.claim.task.id, self.session)
        return SessionEnd(ExitCode.INTERRUPTED, f"{self.claim.task.id} was stopped")

    async def _park(self, end: SessionEnd, task: Task | None = None) -> SessionEnd:
        """Park the task; with `task`, report what waits in its session."""
        context, name = self._context, self.claim.task.id
        await self._held(context.queue.park(self.claim, end.reason))
        context.log.note("parked", f"parked: {end.reason}", name, self.session)
        if task is not None:
            for item in await context.host.inbox(InboxFilter(session=self.session)):
                await context.reports.parked(task, self.session, item)
        return end

    async def _fail(self, end: SessionEnd) -> SessionEnd:
        """Record that a task failed although its session does not say so."""
        return await self._record(_failed(self.claim.task, self.session, end, self._context.clock.now()))

    async def _record(self, result: TaskResult) -> SessionEnd:
        """Record a result in the queue, then report it; a worker that is killed in between does it again."""
        context, name, state = self._context, self.claim.task.id, QueueState(result.status)
        await context.reports.expect(result)
        await self._held(context.queue.finish(self.claim, state, result.reason, result), result)
        tell = context.log.note if state is QueueState.DONE else context.log.fail
        tell(str(result.status), f"{result.status}: {result.reason}", name, self.session)
        await context.reports.ended(result)
        if trouble := await share_audit(await context.host.repo()):
            context.log.caution("not_audited", trouble, name, self.session)
        return SessionEnd(ExitCode(result.exit_code), f"{name} {result.status}: {result.reason}")

    async def _held(self, change: Awaitable[None], result: TaskResult | None = None) -> None:
        """Make a change with the claim; raise `_Stopped`, and report no result, if another worker has it."""
        try:
            await change
        except LockedError as error:
            self.lose()
            if result is not None:
                await self._context.reports.forget(result)
            raise _Stopped(Cause.LOCK, SessionEnd(error.exit_code, str(error))) from error


def _failed(task: QueuedTask, session: SessionId, end: SessionEnd, now: str) -> TaskResult:
    code = ExitCode.FAILED if end.exit_code is ExitCode.DONE else end.exit_code
    failed = TaskResult(task.id, TaskStatus.FAILED, end.reason, code, origin=task.origin, session=session, finished=now)
    try:
        source = read_definition(task.definition, task.origin, f"{task.id}.yaml").task.source
    except PlanError:
        return failed
    return replace(failed, source=source)


def _result(state: "SessionState") -> TaskResult:
    result = task_result(state, state.run.task) if state.run is not None else None
    if result is None:
        raise JournalError(f"session {state.session} does not say how its task ended")
    return result


def _cause(state: "SessionState") -> Cause | None:
    return _CAUSES.get(state.trouble.source) if state.trouble is not None else None


def _is_over(state: "SessionState") -> bool:
    return state.run is not None and not state.unfinished and state.run.status in ENDS


def _stopped(error: WorkbenchError) -> _Stopped:
    """Return the stop by an error."""
    kinds = (
        (ModelError, Cause.MODEL),
        (DatabaseDownError, Cause.DATABASE),
        (SigningError, Cause.KEY),
        (StorageError, Cause.DISK),
        (LockedError, Cause.LOCK),
    )
    cause = next((cause for kind, cause in kinds if isinstance(error, kind)), None)
    end = SessionEnd(error.exit_code, error_text(error))
    return _Stopped(cause or _lock_cause(end.reason), end)


def _lock_cause(reason: str) -> Cause | None:
    return Cause.LOCK if any(word in reason for word in _LOCK_WORDS) else None
