"""The plan's tasks in the queue: dispatch of exactly what was approved, progress, and cancellation."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.dispatch.plan_queue import PlanQueue
from agent_workbench.api.trusted_repo import require_trust, say_nothing, trusted_repo
from agent_workbench.bootstrap.stores import user_name
from agent_workbench.bootstrap.task_queue import dispatched_definition, project_queue
from agent_workbench.core.dispatch.preparation import Dispatch, PlanApproval, TaskRemark, prepare
from agent_workbench.core.dispatch.progress import Cancelled, PlanProgress, ProgressFacts, plan_progress
from agent_workbench.core.errors import PlanError, StorageError, error_text
from agent_workbench.core.ids import TaskId
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.core.plan.needs import Needs
from agent_workbench.core.ports.task_queue import QueuedTask
from agent_workbench.core.queue.routing import unmet_needs

if TYPE_CHECKING:  # adapters are loaded by the calls that need them
    from agent_workbench.core.events import PlanEvent

CHANGED = "the plan or the queue changed after this was shown, so nothing was queued"
LABEL = "plan dispatch"
REPLACED = "what it waited for was queued again, and so was it"
MOST_DEFINITION_BYTES = 1_000_000


@asynccontextmanager
async def opened_plan_work(invocation: Invocation) -> AsyncGenerator["LocalPlanWork"]:
    """Yield the work on the plan around `invocation`, and close it."""
    work = LocalPlanWork(invocation)
    try:
        yield work
    finally:
        await work.close()


class LocalPlanWork:
    """Implements `core.dispatch.plan_work.PlanWork` for the repository around `invocation`."""

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
        plan = await opened.synced(rows)
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
            plan.goal, plan_progress(plan, facts), opened.place, await opened.workers(fleet), facts.paused
        )
        return self._last

    async def prepare(self, wanted: Sequence[TaskId] = ()) -> Dispatch:
        """Return what a dispatch would queue."""
        opened = await self._open()
        rows = await opened.rows()
        plan = await opened.synced(rows)
        unmerged = [task.id for task in plan.tasks if await self._is_unmerged(opened, task.id, task.status)]
        found = prepare(plan, await self._approvals(opened, plan), rows, unmerged, wanted)
        return replace(found, unmet=tuple(await self._unmet(opened, found)))

    async def dispatch(self, shown: Dispatch, wanted: Sequence[TaskId] = ()) -> Dispatch:
        """Queue exactly what was shown."""
        from agent_workbench.core.events import DispatchedTask, PlanDispatched, TasksWithdrawn

        who = await asyncio.to_thread(user_name)
        opened = await self._open()
        await require_trust(opened.repo)
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
        plan = await opened.synced(rows)
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
            await opened.synced(await opened.rows())
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
        from agent_workbench.api.sessions.event_feed import EventFeed
        from agent_workbench.api.sessions.session_opening import open_session
        from agent_workbench.core.events import Author, PlanRead, SessionLeft
        from agent_workbench.core.history.session_choice import SessionQuery
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
