"""Tasks that wait for a decision, files of the queue that are refused, and the log of a worker."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode, JournalError, UsageError
from agent_workbench.core.events import SessionConfigured
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.stores import Inbox, SessionStore
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskQueue
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.workers import LogLevel, WorkerLine
from agent_workbench.subjects.inbox.calls import RepoInbox

WriteLine = Callable[[WorkerLine], None]

Refused = Callable[[], tuple[tuple[str, str], ...]]
TellHooks = Callable[[str, str], Awaitable[str]]
"""Tell the hooks of a file and the reason; return what went wrong."""


class WorkerLog:
    """Makes lines of what happens and hands them to `write`; no secret of the environment is in them."""

    def __init__(self, write: WriteLine, clock: Clock, redacted: Callable[[str], str]) -> None:
        self._write = write
        self._clock = clock
        self._redacted = redacted

    def note(self, event: str, text: str, task: str = "", session: SessionId = NO_SESSION) -> None:
        """Log an event of interest."""
        self._line(LogLevel.INFO, event, text, task, session)

    def trace(self, event: str, text: str, task: str = "", session: SessionId = NO_SESSION) -> None:
        """Log what is of interest only to find a fault."""
        self._line(LogLevel.DEBUG, event, text, task, session)

    def caution(self, event: str, text: str, task: str = "", session: SessionId = NO_SESSION) -> None:
        """Log a trouble that passes, or that the user may want to mend."""
        self._line(LogLevel.WARNING, event, text, task, session)

    def fail(self, event: str, text: str, task: str = "", session: SessionId = NO_SESSION) -> None:
        """Log what ends a task or the worker."""
        self._line(LogLevel.ERROR, event, text, task, session)

    def _line(self, level: LogLevel, event: str, text: str, task: str, session: SessionId) -> None:
        said = self._redacted(text.removeprefix(f"{task} "))
        self._write(WorkerLine(self._clock.now(), level, event, said, self._redacted(task), session))


class RefusedFiles:
    """Takes from `refused` the files that the queue moved to `failed/`; `tell` runs beside the work."""

    def __init__(self, refused: Refused, tell: TellHooks, log: WorkerLog) -> None:
        self._refused = refused
        self._tell = tell
        self._log = log
        self._telling: set[asyncio.Task[None]] = set()

    def take(self) -> tuple[SessionEnd, ...]:
        """Log the files that were refused since the last call, and return them as ends of tasks."""
        found = self._refused()
        for name, reason in found:
            self._log.caution("refused", f"no task: {reason}", name)
            telling = in_background(self._told(name, reason))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)
        return tuple(SessionEnd(ExitCode.FAILED, f"{name} is no task: {reason}") for name, reason in found)

    async def settle(self) -> None:
        """Wait until the hooks were told; each has a limit of its own."""
        while self._telling:
            await asyncio.wait(self._telling)

    async def _told(self, name: str, reason: str) -> None:
        if trouble := await self._tell(name, reason):
            self._log.caution("hook", trouble, name)


class ParkedTasks:
    """Looks for decisions about the parked tasks of a queue."""

    def __init__(
        self, queue: TaskQueue, inbox: Inbox, sessions: SessionStore, proposals: RepoInbox, log: WorkerLog
    ) -> None:
        self._queue = queue
        self._inbox = inbox
        self._sessions = sessions
        self._proposals = proposals
        self._log = log
        self._parked: tuple[QueuedTask, ...] = ()
        self._exhausted = 0
        self._told = set[tuple[SessionId, str]]()

    async def resume_decided(self, *, thorough: bool) -> int:
        """Free the tasks whose sessions can go on and return their number; raise `StorageError`.

        `thorough`: read the queue again, and look for sessions in which somebody has decided at their own screen.
        """
        if thorough:
            parked = await self._queue.tasks(QueueState.PARKED)
            self._parked = tuple(each for each in parked if not each.exhausted)
            self._exhausted = len(parked) - len(self._parked)
        resumed = [each for each in self._parked if await self._can_go_on(each, thorough=thorough)]
        for task in resumed:
            await self._queue.resume(task.id)
            self._log.note("decided", "it can go on: decided, or free again", task.id, task.session)
        self._parked = tuple(each for each in self._parked if each not in resumed)
        return len(resumed)

    @property
    def count(self) -> int:
        """Tasks that wait for a person, as of the last thorough look."""
        return len(self._parked) + self._exhausted

    async def resume_passed(self, policy: SessionConfigured) -> None:
        """Free the tasks whose waiting proposals this policy decides; raise `StorageError`.

        They were parked under another one.
        """
        from agent_workbench.engine.policy import is_passed

        for task in await self._queue.tasks(QueueState.PARKED):
            if task.exhausted or not task.session:
                continue
            try:
                events = await self._sessions.read(task.session)
            except (JournalError, UsageError):
                continue
            state = await asyncio.to_thread(fold_all, events)
            if is_passed(state, policy):
                await self._queue.resume(task.id)
                self._log.note("passed", "the policy of this start decides what it waited for", task.id, task.session)

    async def reject_expired(self) -> None:
        """Reject what nobody decided in time; raise `StorageError`."""
        for item in await self._proposals.reject_expired():
            self._log.note(
                "expired", f"{item.proposal.id} is rejected: nobody decided in time", item.task, item.session
            )

    async def _can_go_on(self, task: QueuedTask, *, thorough: bool) -> bool:
        if not task.session:
            return True
        decided = bool(await self._inbox.pending(task.session))
        for why in self._inbox.refused(task.session):
            if (task.session, why) not in self._told:
                self._told.add((task.session, why))
                self._log.caution("decision", why, task.id, task.session)
        if not (decided or thorough):
            return False
        try:
            summary = await self._sessions.summary(task.session)
        except (JournalError, UsageError):
            # Who works on the task says what is wrong; one of another machine may not be copied yet.
            return decided or task.origin is not TaskOrigin.DATABASE
        if summary.worker and not decided:
            return False  # on its own machine somebody may decide what is not copied yet
        return (decided or not summary.waits) and not summary.holder
