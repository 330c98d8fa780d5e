"""The plan's tasks in the queue: dispatch of exactly what was approved, progress, costs, cancellation."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.trusted_repo import require_trust, say_nothing, trusted_repo
from agent_workbench.bootstrap.database import machine_name, shared_signatures
from agent_workbench.bootstrap.shared_resources import local_machine
from agent_workbench.bootstrap.stores import user_name
from agent_workbench.core.errors import JournalError, PlanError, StorageError, UsageError, error_text
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.inbox import InboxFilter
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.core.ports.stores import SessionStore
from agent_workbench.core.ports.task_queue import ENDED, QueuedTask
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.task_estimates import Needs
from agent_workbench.core.task_routing import unmet_needs
from agent_workbench.core.workers import Fleet, WorkerPresence, WorkerRecord
from agent_workbench.subjects.dispatch.approval_calls import PlanApprovals
from agent_workbench.subjects.dispatch.preparation import Dispatch, PlanApproval, TaskRemark, prepare
from agent_workbench.subjects.dispatch.progress import (
    Cancelled,
    PlanProgress,
    ProgressFacts,
    TaskCost,
    plan_progress,
    settled,
)
from agent_workbench.subjects.queue.wiring import (
    DEFAULT_PROJECT,
    dispatched_definition,
    project_queue,
    worker_files,
    worker_registry,
)

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.events import PlanEvent
    from agent_workbench.core.ports.repo_files import Plans
    from agent_workbench.core.ports.shared_state import WorkerRegistry
    from agent_workbench.core.ports.task_queue import ProjectQueue
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.inbox.calls import RepoInbox


CHANGED = "the plan or the queue changed after this was shown, so nothing was queued"
LABEL = "plan dispatch"
REPLACED = "what it waited for was queued again, and so was it"
MOST_DEFINITION_BYTES = 1_000_000

SECONDS_A_MINUTE = 60.0


class PlanQueue:
    """A plan and the queue of its tasks: rows, workers, costs, approvals, and the proposals that wait."""

    def __init__(self, repo: "RepoContext", settings: "Settings", store: "SessionStore", queue: "ProjectQueue") -> None:
        self.repo = repo
        self.settings = settings
        self.queue = queue
        self.store = store
        self._registry: WorkerRegistry | None = None
        self._inbox: RepoInbox | None = None
        self._proved: set[QueuedTask] = set()
        self.plans: Plans = repo.plans(settings)
        self.approvals = PlanApprovals(
            store, shared_signatures(repo, settings.database) if settings.database.active else None
        )
        self.costs = SessionCosts(store)

    @property
    def place(self) -> str:
        """Place of the queue."""
        return self.queue.path

    async def rows(self) -> dict[str, QueuedTask]:
        """Return the tasks of the queue by name; those of the plan with the `problem` of their end."""
        named = {task.queued_as for task in (await self.plans.read()).tasks}
        rows = {each.id: each for each in await self.queue.tasks()}
        for name in named & rows.keys():
            row = rows[name]
            if row not in self._proved:
                problem = await self.queue.end_problem(row)
                rows[name] = replace(row, problem=problem)
                self._proved |= {row} if row.state in ENDED and not problem else set()
        return rows

    async def fleet(self) -> Fleet:
        """Return the workers that are registered for the queue, none for a folder."""
        if not self.settings.database.active:
            return Fleet()
        if self._registry is None:
            self._registry = await worker_registry(self.repo, self.settings, DEFAULT_PROJECT)
        return await self._registry.fleet()

    async def capable(self) -> tuple[WorkerRecord, ...]:
        """Return the workers whose abilities count: the registered ones, or for a folder this machine."""
        if self.settings.database.active:
            return (await self.fleet()).workers
        machine = local_machine(self.repo.invocation.environ, self.repo.root)
        await asyncio.to_thread(machine.find_gpus)
        resources = await asyncio.to_thread(machine.resources)
        return (WorkerRecord(machine_name(self.settings), tags=self.settings.worker.tags, resources=resources),)

    async def workers(self, fleet: Fleet) -> int:
        """Return the number of living workers."""
        if self.settings.database.active:
            return sum(each.presence(fleet.now) is not WorkerPresence.OFFLINE for each in fleet.workers)
        return len(await asyncio.to_thread(lambda: worker_files(self.repo, DEFAULT_PROJECT).living()))

    async def settle(self, rows: Mapping[str, QueuedTask]) -> Plan:
        """Write what ended in the queue to the plan, and return the plan."""
        before = await self.plans.read()
        plan = settled(before, rows)
        for task in plan.tasks:
            if task != before.task(task.id):
                await self.plans.set_status(task.id, task.status, task.blocked_because)
        return plan

    async def items(self, sessions: set[SessionId]) -> dict[SessionId, tuple[str, str]]:
        """Return what waits in these sessions: the id in the inbox, and its effect."""
        from agent_workbench.subjects.inbox.calls import repo_inbox
        from agent_workbench.subjects.inbox.view import view_inbox

        if self._inbox is None:
            self._inbox = await repo_inbox(self.repo.invocation, self.repo.shared)
        inbox = self._inbox
        waiting = [each for each in await inbox.items(InboxFilter()) if each.session in sessions]
        return {row.item.session: (row.id, f"{row.kind}: {row.effect}") for row in view_inbox(waiting, inbox.now())}


@asynccontextmanager
async def opened_plan_work(invocation: Invocation) -> AsyncGenerator["LocalPlanWork"]:
    """Yield the work on the plan around `invocation`, and close it."""
    work = LocalPlanWork(invocation)
    try:
        yield work
    finally:
        await work.close()


class LocalPlanWork:
    """Implements `subjects.dispatch.progress.PlanWork` for the repository around `invocation`."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._opened: PlanQueue | None = None
        self._last: PlanProgress | None = None

    async def progress(self) -> PlanProgress:
        """Return the progress of the tasks; see the port."""
        opened = await self._open()
        try:
            rows = await opened.rows()
            fleet = await opened.fleet()
        except StorageError as error:
            shown = self._last or PlanProgress(tasks=plan_progress(await opened.plans.read(), _no_facts()))
            return replace(shown, problem=error_text(error))
        before = await opened.plans.read()
        plan = settled(before, rows)
        sessions = {row.session for row in rows.values() if row.session}
        approvals = await self._approvals(opened, plan)
        items = await opened.items(sessions)
        pause = fleet.pause
        facts = ProgressFacts(
            rows,
            await opened.costs.of(sessions),
            items,
            {task: each.estimate for task, each in approvals.items() if each.estimate is not None},
            "" if pause is None else f"since {pause.since} no worker has {pause.least:g} % of its capacity free",
        )
        self._last = PlanProgress(
            plan.goal,
            plan_progress(plan, facts),
            opened.place,
            await opened.workers(fleet),
            facts.paused,
            unsettled=tuple(task.id for task in plan.tasks if task != before.task(task.id)),
        )
        return self._last

    async def settle(self) -> None:
        """Write what ended in the queue to the plan."""
        opened = await self._open()
        await opened.settle(await opened.rows())

    async def prepare(self, wanted: Sequence[TaskId] = ()) -> Dispatch:
        """Return what a dispatch would queue."""
        opened = await self._open()
        rows = await opened.rows()
        plan = settled(await opened.plans.read(), rows)
        unmerged = [task.id for task in plan.tasks if await self._is_unmerged(opened, task.id, task.status)]
        found = prepare(plan, await self._approvals(opened, plan), rows, unmerged, wanted)
        return replace(found, unmet=tuple(await self._unmet(opened, found)))

    async def dispatch(self, shown: Dispatch, wanted: Sequence[TaskId] = ()) -> Dispatch:
        """Queue exactly what was shown."""
        from agent_workbench.core.events import DispatchedTask, PlanDispatched, TasksWithdrawn

        who = await asyncio.to_thread(user_name)
        opened = await self._open()
        await require_trust(opened.repo)
        await self.settle()
        now = await self.prepare(wanted)
        if now.digest != shown.digest:
            raise PlanError(CHANGED, advice="look at it again")
        if not now.tasks:
            return now
        texts = {each.name: dispatched_definition(each.definition) for each in now.tasks}
        for name, text in texts.items():
            if len(text.encode()) > MOST_DEFINITION_BYTES:
                raise PlanError(f"{name} has more than {MOST_DEFINITION_BYTES:,} bytes", advice="make its text shorter")
        tasks = tuple(
            DispatchedTask(
                each.task.id, each.name, each.approval.plan if each.approval is not None else "", each.definition
            )
            for each in now.tasks
        )
        replaced = tuple(name for each in now.tasks for name in each.replaces)
        withdrawn = (TasksWithdrawn(replaced, REPLACED, who),) if replaced else ()
        await self._record(opened, *withdrawn, PlanDispatched(tasks, who))
        for each in now.tasks:
            # The plan has the name first: a stop in between leaves a task that the next dispatch queues under it.
            await opened.plans.set_status(each.task.id, TaskStatus.QUEUED, each.name)
            for name in each.replaces:
                await opened.queue.withdraw(name, REPLACED)
            await opened.queue.put(QueuedTask(each.name, texts[each.name], depends_on=each.definition.depends_on))
        return now

    async def cancel(self, wanted: Sequence[TaskId], reason: str = "") -> Cancelled:
        """Take tasks back from the queue."""
        from agent_workbench.core.events import TasksWithdrawn

        who = await asyncio.to_thread(user_name)
        opened = await self._open()
        rows = await opened.rows()
        plan = await opened.settle(rows)
        chosen = [plan.task(each) for each in wanted] or [
            each for each in plan.tasks if each.status is TaskStatus.QUEUED
        ]
        queued = [each for each in chosen if each.status is TaskStatus.QUEUED]
        left = [
            TaskRemark(each.id, f"it is {each.status}, and not in the queue") for each in chosen if each not in queued
        ]
        if queued:
            why = reason.strip() or f"{who} cancelled it"
            await self._record(opened, TasksWithdrawn(tuple(each.queued_as for each in queued), why, who))
            for task in queued:
                if task.queued_as in rows and not await opened.queue.withdraw(task.queued_as, why):
                    left.append(TaskRemark(task.id, "it ended meanwhile"))
                    continue
                await opened.plans.set_status(task.id, TaskStatus.BLOCKED, why)
            await self.settle()
        ended = {each.task for each in left}
        return Cancelled(tuple(each.id for each in queued if each.id not in ended), tuple(left))

    async def close(self) -> None:
        """Give back the connections."""
        if self._opened is not None:
            await self._opened.queue.close()
            await self._opened.repo.shared.close()

    async def _open(self) -> PlanQueue:
        if self._opened is None:
            repo, settings = await trusted_repo(self._invocation)
            store = await asyncio.to_thread(repo.sessions, settings)
            self._opened = PlanQueue(repo, settings, store, await project_queue(repo, settings))
        return self._opened

    async def _approvals(self, opened: PlanQueue, plan: Plan) -> dict[TaskId, PlanApproval]:
        # A finished task needs no approval any more; its estimate is shown beside what it cost.
        return await opened.approvals.of([task for task in plan.tasks if task.owner == "agent"])

    async def _is_unmerged(self, opened: PlanQueue, task: TaskId, status: TaskStatus) -> bool:
        return status is TaskStatus.DONE and await opened.repo.repository.task_commit(task) is not None

    async def _unmet(self, opened: PlanQueue, found: Dispatch) -> list[TaskRemark]:
        needy = [each for each in found.tasks if each.task.needs != Needs()]
        if not needy:
            return []
        workers = await opened.capable()
        # Which models answer here is found out by the worker alone.
        unknown = {} if opened.settings.database.active else {"models": ()}
        problems = ((each.task.id, unmet_needs(replace(each.task.needs, **unknown), workers)) for each in needy)
        return [TaskRemark(task, problem) for task, problem in problems if problem]

    async def _record(self, opened: PlanQueue, *events: "PlanEvent") -> None:
        """Record events in a session of its own, so that the journal says who did what when."""
        from agent_workbench.api.sessions.session_handle import EventFeed
        from agent_workbench.api.sessions.session_opening import open_session
        from agent_workbench.core.events import Author, PlanRead, SessionLeft
        from agent_workbench.core.history.summaries import SessionQuery
        from agent_workbench.engine.runtime.publisher import UpdatePublisher

        query = SessionQuery(fresh=True, label=LABEL)
        publisher = UpdatePublisher(lambda _: None)
        trusted = await asyncio.to_thread((await opened.repo.trust()).is_trusted)
        session, recorder = await open_session(
            opened.repo, query, publisher, EventFeed(), trusted=trusted, say=say_nothing
        )
        try:
            await session.record(PlanRead(opened.plans.path, await opened.plans.read(), Author.USER))
            for event in events:
                await session.record(event)
            await session.record(SessionLeft("ended"))
        finally:
            try:
                await session.close()
            finally:
                await recorder.close()


def _no_facts() -> ProgressFacts:
    return ProgressFacts({}, {}, {}, {}, answered=False)


class SessionCosts:
    """Costs of the newest task of each session."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._known: dict[SessionId, tuple[int, TaskCost | None]] = {}

    async def of(self, sessions: Iterable[SessionId]) -> dict[SessionId, TaskCost]:
        """Return the cost for each session that is known here and has begun its task."""
        found = {}
        for session in sessions:
            try:
                events = (await self._store.summary(session)).events
                if self._known.get(session, (-1, None))[0] != events:
                    self._known[session] = (events, await self._cost(session))
            except (JournalError, StorageError, UsageError):
                continue  # it is on another machine, or damaged: then nothing is known of its cost
            if (cost := self._known[session][1]) is not None:
                found[session] = cost
        return found

    async def _cost(self, session: SessionId) -> TaskCost | None:
        from agent_workbench.core.fold import fold_all

        events = await self._store.read(session)
        run = (await asyncio.to_thread(fold_all, events)).run
        if run is None:
            return None
        return TaskCost(run.step, run.tokens, round(run.working_seconds / SECONDS_A_MINUTE, 3), run.dollars)
