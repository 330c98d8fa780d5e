"""Unattended runs of tasks under the policy, one session after another, and such runs in the background."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.trusted_repo import require_trust
from agent_workbench.bootstrap.repo_context import RepoContext
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import UsageError, WorkbenchError, task_locked
from agent_workbench.core.history.summaries import SessionQuery, unfinished_tasks, was_killed_when_done
from agent_workbench.core.ids import NO_SESSION, SessionId, TaskId
from agent_workbench.core.inbox import InboxFilter, InboxItem
from agent_workbench.core.intents import Leave
from agent_workbench.core.plan import TaskStatus, WorkState, work_state
from agent_workbench.core.session_request import Invocation, SessionEnd, TaskOutcome, TaskOutcomeKind

if TYPE_CHECKING:
    from agent_workbench.core.ports.session_host import SessionHandle
    from agent_workbench.core.ports.stores import Inbox, SessionStore
    from agent_workbench.core.settings import Settings


LOG_LINES = 20
MAX_RUNS = 4
"""Tasks that one process works on at the same time."""


class UnattendedRun:
    """A run over the tasks of `query` (all that are ready if it names none); `end` is known when it is over."""

    def __init__(self, host: LocalSessionHost, query: SessionQuery) -> None:
        self._host = host
        self._query = query
        self._session: SessionHandle | None = None
        self._stopped = False
        self.end = SessionEnd()

    def stop(self) -> bool:
        """Have the open session left and open no further one; return False if none is open."""
        self._stopped = True
        if self._session is None:
            return False
        self._session.submit(Leave("stopped"))
        return True

    async def sessions(self) -> "AsyncGenerator[SessionHandle]":
        """Yield each session when it is open; go on when it has ended. Raises `TrustError`, `PlanError`."""
        repo = await self._host.repo()
        await require_trust(repo)
        settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
        if self._query.tasks is None:
            async for session in self._all(repo, settings):
                yield session
            return
        over = await self._already_over(repo, settings, self._query.tasks)
        if over is not None:
            self.end = over
            return
        self._session = await self._host.open_unattended(repo, self._query)
        yield self._session
        self.end = await self._session.wait()

    async def _all(self, repo: RepoContext, settings: "Settings") -> "AsyncGenerator[SessionHandle]":
        """Resume every session that stopped in a task, then do all tasks that are ready.

        A parked task keeps its session, so that the others need another one.
        """
        from agent_workbench.engine.session.unattended import OF_TASKS, settled, sum_up, taken_outcome

        sessions, plans = await asyncio.to_thread(repo.sessions, settings), repo.plans(settings)
        inbox = await asyncio.to_thread(repo.inbox, settings)
        query, before = self._query, tuple[TaskOutcome, ...]()
        while not self._stopped:
            plan = await plans.read()
            unfinished = unfinished_tasks(await sessions.summaries())
            taken = await repo.repository.taken([each.id for each in plan.tasks if each.open], NO_SESSION)
            held = {**{task: holder for task, holder in unfinished.items() if holder}, **taken}
            outcomes = {task: taken_outcome(task, holder) for task, holder in held.items()}
            outcomes |= {each.task: each for each in before}
            if plan.next_task(outcomes) is None and await sessions.find(query) is None:
                self.end = sum_up(outcomes.values(), plan)
                return
            elsewhere = () if query.fresh else tuple(unfinished)
            self._session = await self._host.open_unattended(repo, query, tuple(outcomes.values()), elsewhere)
            yield self._session
            self.end = await self._session.wait()
            if self.end.exit_code not in OF_TASKS:
                return
            before = await self._undecided(sessions, inbox, settled(self.end.outcomes))
            over = {each.id for each in (await plans.read()).tasks if not each.open}
            query = replace(query, name="", passing=frozenset(over.union(each.task for each in before)))

    async def _undecided(
        self, sessions: "SessionStore", inbox: "Inbox", outcomes: tuple[TaskOutcome, ...]
    ) -> tuple[TaskOutcome, ...]:
        """Return the outcomes without tasks that were parked and decided since: they go on before the run ends."""
        decided = set[TaskId]()
        for summary in await sessions.summaries():
            if summary.ours and summary.waits and summary.tasks and await inbox.pending(summary.id):
                decided.add(summary.tasks[-1])
        return tuple(
            each for each in outcomes if each.outcome is not TaskOutcomeKind.PARKED or each.task not in decided
        )

    async def _already_over(
        self, repo: RepoContext, settings: "Settings", tasks: tuple[TaskId, ...]
    ) -> SessionEnd | None:
        """Return the end if there is nothing to do, so that no empty session is begun.

        Raises `PlanError`, and `LockedError` if another session works on the first of the tasks.
        """
        from agent_workbench.engine.session.unattended import all_done, already_done
        from agent_workbench.engine.task.task_start import check_startable

        sessions = await asyncio.to_thread(repo.sessions, settings)
        if await sessions.find(self._query) is not None:
            return None
        plan = await repo.plans(settings).read()
        again = not self._query.fresh and all_done(plan, tasks)
        if again and was_killed_when_done(await sessions.summaries(), tasks):
            return already_done(tasks)
        check_startable(plan, tasks)
        for task, holder in (await repo.repository.taken(tasks[:1], NO_SESSION)).items():
            raise task_locked(task, holder)
        return None


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
