"""Protocol of the queue of tasks for workers. `tests/contracts` holds every implementation to it."""

import asyncio
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.task_result import TaskResult
from agent_workbench.core.task_routing import RoutingDecision

MOST_ATTEMPTS = 3
"""Claims of a task whose lease may run out on machines that share a database, before it is parked."""


class QueueState(StrEnum):
    """State of a queued task. `withdrawn`: who queued it took it back before it ended."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


ENDED = frozenset({QueueState.DONE, QueueState.FAILED, QueueState.WITHDRAWN})
"""States in which a task stays."""


class QueuedTask(Struct, frozen=True):
    """A task for a worker: `definition` is its text as it was queued; a higher `priority` is done first.

    `id` is the key of the queue: the id that the definition sets, or one made of the name it was queued under.

    `session` is where it was worked on last, `reason` why it waits, why it is parked or how it ended. `origin` says who
    wrote the definition; the definition itself cannot. `depends_on` are the ids of the queued tasks that must be done
    first. `worker` has the task, or was chosen for it. `lost` are the workers whose lease of it ran out; one that too
    many lost is parked until `resume`. `problem` says why its end does not count, if somebody asked
    `ProjectQueue.end_problem`.
    """

    id: str
    definition: str
    priority: int = 0
    state: QueueState = QueueState.QUEUED
    session: SessionId = NO_SESSION
    reason: str = ""
    origin: TaskOrigin = TaskOrigin.LOCAL
    depends_on: tuple[str, ...] = ()
    worker: str = ""
    lost: tuple[str, ...] = ()
    problem: str = ""

    @property
    def exhausted(self) -> bool:
        """True if it was lost too often: it waits until a person frees it."""
        return len(self.lost) >= MOST_ATTEMPTS


class TaskClaim(Struct, frozen=True):
    """A worker's lease of a task. `fence` grows with every claim of the task; `routing` says why it went there."""

    task: QueuedTask
    worker: str
    fence: int
    routing: RoutingDecision | None = None


class TaskQueue(Protocol):
    """Tasks for workers. Each ends once, whatever worker dies.

    A claim is a lease. One that is not renewed in time expires: the task can be claimed again, with a larger
    `TaskClaim.fence`. From then on every call with the old claim raises `LockedError` and changes nothing, also when
    the new claim has ended. Every change is durable when its call returns. Any method may raise `StorageError`.
    """

    async def put(self, task: QueuedTask) -> bool:
        """Queue a task; return False and change nothing if one with its id was ever queued.

        An id that the definition sets goes before `task.id`.
        """

    async def claim(self, worker: str, lease_seconds: float, *, begun: bool = False) -> TaskClaim | None:
        """Return the first task that is free, by priority and then by id; None if there is none.

        With `begun` only tasks that have a session count: they are continued before anything new is begun.

        Of two workers at once only one gets a task. A task that was worked on before comes with its session. A task is
        not free as long as one of those it depends on is not done in this queue, also if the queue does not know it.
        """

    async def renew(self, claim: TaskClaim, lease_seconds: float, session: SessionId = NO_SESSION) -> None:
        """Extend the lease from now on, and note the session in which the task is worked on."""

    async def park(self, claim: TaskClaim, reason: str) -> None:
        """End the claim; nobody gets the task before `resume`."""

    async def resume(self, task: str) -> QueueState:
        """Make a parked task free again and return its state; a task in another state stays as it is.

        Raises `UsageError` if there is no such task.
        """

    async def finish(self, claim: TaskClaim, state: QueueState, reason: str, result: TaskResult | None = None) -> None:
        """End the claim with the task done or failed; raise `UsageError` for any other state.

        A `result` is kept beside the ended task.
        """

    async def withdraw(self, task: str, reason: str) -> bool:
        """Take a task back; return False and change nothing if it ended. A claim of it does not count any more.

        Raises `UsageError` if there is no such task.
        """

    async def tasks(self, *states: QueueState) -> tuple[QueuedTask, ...]:
        """Return the tasks in these states (none: in any), by priority and then by id."""


class ProjectQueue(TaskQueue, Protocol):
    """The queue of one project, as a worker and its user see it."""

    @property
    def path(self) -> str:
        """Name of the queue for the user."""

    @property
    def news(self) -> asyncio.Event:
        """Set when a task may be free for this process; who waits for it clears it. It may never be set."""

    def mark(self) -> object:
        """Return what changes when a task may be free; cheap, and blocks for a moment at most."""

    async def exists(self) -> bool:
        """Return True if the queue is there; raise `StorageError` if something else is in its place."""

    async def withdrew(self, task: str, session: SessionId) -> bool:
        """Return True if the task that the session works on was withdrawn."""

    async def end_problem(self, task: QueuedTask) -> str:
        """Return why the end of a task does not count; empty if it does, or if the task did not end."""

    def refused(self) -> tuple[tuple[str, str], ...]:
        """Return the names of what was queued and is no task, each with the reason: those since the last call."""

    async def close(self) -> None:
        """Free the claims of this object."""
