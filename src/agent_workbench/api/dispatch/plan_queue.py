"""The plan of a repository beside the queue of its tasks."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.dispatch.approvals import PlanApprovals
from agent_workbench.api.dispatch.session_costs import SessionCosts
from agent_workbench.bootstrap.database import machine_name
from agent_workbench.bootstrap.fleet import worker_registry
from agent_workbench.bootstrap.machine import local_machine
from agent_workbench.bootstrap.signatures import shared_signatures
from agent_workbench.bootstrap.task_queue import DEFAULT_PROJECT
from agent_workbench.bootstrap.worker import worker_files
from agent_workbench.core.dispatch.preparation import STATUS
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxFilter
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.core.ports.task_queue import ENDED, QueuedTask, QueueState
from agent_workbench.core.queue.workers import Fleet, WorkerPresence, WorkerRecord
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:  # adapters are loaded by the calls that need them
    from agent_workbench.api.sessions.inbox import RepoInbox
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ports.repo_files import Plans
    from agent_workbench.core.ports.shared_state import WorkerRegistry
    from agent_workbench.core.ports.stores import SessionStore
    from agent_workbench.core.ports.task_queue import ProjectQueue
    from agent_workbench.core.settings import Settings

WHY_CHARS = 300


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
        return len(await asyncio.to_thread(worker_files(self.repo, DEFAULT_PROJECT).living))

    async def synced(self, rows: Mapping[str, QueuedTask]) -> Plan:
        """Return the plan after what ended in the queue was written to it."""
        plan = await self.plans.read()
        for task in plan.tasks:
            row = rows.get(task.queued_as)
            if task.status is TaskStatus.QUEUED and row is not None and row.state in ENDED and not row.problem:
                # Nobody signs a withdrawal, and whoever wrote the row chose its reason.
                reason = sanitize_line(row.reason, WHY_CHARS) if row.state is QueueState.WITHDRAWN else ""
                await self.plans.set_status(task.id, STATUS[row.state], reason)
                plan = plan.with_status(task.id, STATUS[row.state], reason)
        return plan

    async def items(self, sessions: set[SessionId]) -> dict[SessionId, tuple[str, str]]:
        """Return what waits in these sessions: the id in the inbox, and its effect."""
        from agent_workbench.api.sessions.inbox import repo_inbox
        from agent_workbench.views.inbox import view_inbox

        if self._inbox is None:
            self._inbox = await repo_inbox(self.repo.invocation, self.repo.shared)
        inbox = self._inbox
        waiting = [each for each in await inbox.items(InboxFilter()) if each.session in sessions]
        return {row.item.session: (row.id, f"{row.kind}: {row.effect}") for row in view_inbox(waiting, inbox.now())}
