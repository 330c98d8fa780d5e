"""Runs of tasks in the background, for a front end that starts them and asks about them later."""

import asyncio
import contextlib
from collections.abc import Callable

from msgspec import Struct

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.sessions.unattended_run import UnattendedRun
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import UsageError, WorkbenchError
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import NO_SESSION, SessionId, TaskId
from agent_workbench.core.inbox import InboxFilter, InboxItem
from agent_workbench.core.plan import TaskStatus, WorkState, work_state
from agent_workbench.core.session_request import Invocation, SessionEnd

LOG_LINES = 20
MAX_RUNS = 4
"""Tasks that one process works on at the same time."""


class StartedRun(Struct, frozen=True):
    """A run that was started or is under way. Without a session nothing was left to do: `end` says why."""

    task: TaskId
    session: SessionId = NO_SESSION
    end: SessionEnd | None = None


class RunReport(Struct, frozen=True):
    """A task's run as its journal tells; `waiting` are its proposals that need a person.

    Without a task the session was only just opened, or ended before it began one.
    """

    session: SessionId
    task: TaskId | None = None
    state: WorkState = WorkState.STOPPED
    reason: str = ""
    branch: str = ""
    commit: str = ""
    steps: int = 0
    tokens: int = 0
    log: tuple[str, ...] = ()
    waiting: tuple[InboxItem, ...] = ()


class TaskRuns:
    """The runs of this process, at most one for each task, under the repository's own approvals."""

    def __init__(self, invocation: Invocation, say: Callable[[str], None] | None = None) -> None:
        self._host = LocalSessionHost(invocation, say=say)
        self._runs: dict[TaskId, _Run] = {}

    async def start(self, task: TaskId) -> StartedRun:
        """Start the run of a task of the plan, or return the one that is under way here.

        Raises `TrustError`, `PlanError`, `LockedError` for a task that another process works on, and `UsageError` while
        `MAX_RUNS` tasks are being worked on.
        """
        run = self._runs.get(task)
        if run is None:
            if len(self._runs) >= MAX_RUNS:
                names = ", ".join(self._runs)
                raise UsageError(f"{MAX_RUNS} tasks are being worked on: {names}", advice="wait until one has ended")
            run = self._runs[task] = _Run(self._host, task)
            run.work.add_done_callback(lambda _: self._runs.pop(task, None))
        return await run.opened()

    async def stop(self, session: SessionId | None = None) -> None:
        """Have every run leave its session, or the run of one session, and wait for the ends.

        Raises `UsageError` if no run is in that session here.
        """
        runs = tuple(run for run in self._runs.values() if session in {None, run.session})
        if session is not None and not runs:
            raise UsageError(f"no run of this process is in session {session}", advice="only who started it stops it")
        for run in runs:
            run.stop()
        await asyncio.gather(*(run.work for run in runs), return_exceptions=True)


class _Run:
    """One run: `work` goes on until its `session` has ended."""

    def __init__(self, host: LocalSessionHost, task: TaskId) -> None:
        self._task = task
        self._run = UnattendedRun(host, SessionQuery(tasks=(task,)))
        self.session = NO_SESSION
        self._open = asyncio.Event()
        self.work = in_background(self._work(), expected=(WorkbenchError,))

    async def opened(self) -> StartedRun:
        """Wait until the session is open; raise the error that prevented it. Who waits may leave; the run goes on."""
        opening = asyncio.ensure_future(self._open.wait())
        try:
            await asyncio.wait({opening, self.work}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opening.cancel()
        if self._open.is_set():
            return StartedRun(self._task, self.session)
        await self.work
        return StartedRun(self._task, end=self._run.end)

    def stop(self) -> None:
        """Have the session left."""
        if not self._run.stop():
            self.work.cancel()

    async def _work(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            async for session in self._run.sessions():
                self.session = session.session
                self._open.set()


async def run_report(invocation: Invocation, session: SessionId) -> RunReport:
    """Return what the journal of a session says of its newest task; raise `UsageError` for an unknown session."""
    from agent_workbench.api.session_queries import exported_events, session_summaries
    from agent_workbench.core.events.log_lines import log_line
    from agent_workbench.core.fold import fold_all
    from agent_workbench.subjects.inbox.calls import opened_inbox

    # Who has it open is looked up first: a run that ends in between is read to its end.
    holder = next((each.holder for each in await session_summaries(invocation) if each.id == session), "")
    events = await exported_events(invocation, session)
    state = await asyncio.to_thread(fold_all, events)
    lines = tuple(line for each in events if (line := log_line(each.event)))[-LOG_LINES:]
    run = state.run
    async with opened_inbox(invocation) as inbox:
        items = await inbox.items(InboxFilter(session=session))
    trouble = state.trouble.what if state.trouble is not None else ""
    if run is None:
        began = WorkState.RUNNING if holder else WorkState.STOPPED
        return RunReport(session, state=began, reason=trouble, log=lines)
    return RunReport(
        session,
        run.task,
        work_state(run.status or TaskStatus.IN_PROGRESS, held=bool(holder), waits=state.waiting is not None),
        run.reason or trouble,
        run.workspace.branch,
        run.commit or "",
        run.step,
        run.tokens,
        lines,
        items,
    )
