"""Tasks of a plan in the queue: the port that dispatches them, the state of each, why, and its cost."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.ids import NO_SESSION, SessionId, TaskId
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.ports.task_queue import ENDED, QueuedTask, QueueState
from agent_workbench.core.task_estimates import Complexity, Estimate, complexity
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.dispatch.preparation import STATUS, Dispatch, TaskRemark

WHY_CHARS = 300


class TaskState(StrEnum):
    """State of a plan's task. `planned`: it is not dispatched. `waiting`: other tasks must be done first.

    `not proved`: it ended in the queue, and that does not count, because no known worker signed it.
    """

    PLANNED = "planned"
    BLOCKED = "blocked"
    HERE = "in progress here"
    WAITING = "waiting"
    NO_CAPACITY = "waiting for capacity"
    QUEUED = "queued"
    RUNNING = "running"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"
    UNPROVED = "not proved"
    CANCELLED = "cancelled"


_PROVED = {TaskStatus.DONE: TaskState.DONE, TaskStatus.FAILED: TaskState.FAILED}


class TaskCost(Struct, frozen=True):
    """Cost of a task so far, as its session says."""

    steps: int
    tokens: int
    minutes: float
    dollars: float


class TaskProgress(Struct, frozen=True):
    """Progress of a task. `depth` is that in the tree of dependencies, `why` the reason for its state.

    `name` is its id in the queue, `item` names what waits for a person (`agent inbox show`).
    """

    task: Task
    state: TaskState
    why: str = ""
    depth: int = 0
    worker: str = ""
    session: SessionId = NO_SESSION
    item: str = ""
    cost: TaskCost | None = None
    estimate: Estimate | None = None
    complexity: Complexity = Complexity.SIMPLE

    @property
    def name(self) -> str:
        """The task's id in the queue, empty if it is not there."""
        return self.task.queued_as


class PlanProgress(Struct, frozen=True):
    """Progress of all tasks, in the order of the tree. `problem` says why what is shown may be old.

    `queue` names where the tasks are, `workers` how many live there (None: unknown). `paused` says why nothing is
    dispatched to workers now. `unsettled` are tasks that ended in the queue and still have to be settled in the plan.
    """

    goal: str = ""
    tasks: tuple[TaskProgress, ...] = ()
    queue: str = ""
    workers: int | None = None
    paused: str = ""
    problem: str = ""
    unsettled: tuple[TaskId, ...] = ()


class ProgressFacts(Struct, frozen=True):
    """Facts about the tasks of a plan: rows of the queue by name, and by session costs and waiting proposals.

    `items` have the id and the text of what waits. `answered`: the queue did.
    """

    rows: Mapping[str, QueuedTask]
    costs: Mapping[SessionId, TaskCost]
    items: Mapping[SessionId, tuple[str, str]]
    estimates: Mapping[TaskId, Estimate]
    paused: str = ""
    answered: bool = True


def settled(plan: Plan, rows: Mapping[str, QueuedTask]) -> Plan:
    """Return the plan with the status of each task that has ended in the queue."""
    for task in plan.tasks:
        row = rows.get(task.queued_as)
        if task.status is TaskStatus.QUEUED and row is not None and row.state in ENDED and not row.problem:
            # Nobody signs a withdrawal, and whoever wrote the row chose its reason.
            reason = sanitize_line(row.reason, WHY_CHARS) if row.state is QueueState.WITHDRAWN else ""
            plan = plan.with_status(task.id, STATUS[row.state], reason)
    return plan


def plan_progress(plan: Plan, facts: ProgressFacts) -> tuple[TaskProgress, ...]:
    """Return the progress of each task, those that depend on another one below it."""
    done = {task.id for task in plan.tasks if _is_done(task, facts.rows)}
    return tuple(_progress(plan, task, depth, done, facts) for task, depth in _tree(plan.tasks))


def _is_done(task: Task, rows: Mapping[str, QueuedTask]) -> bool:
    row = rows.get(task.queued_as)
    return task.status is TaskStatus.DONE or (row is not None and row.state is QueueState.DONE and not row.problem)


def _progress(plan: Plan, task: Task, depth: int, done: set[TaskId], facts: ProgressFacts) -> TaskProgress:
    row = facts.rows.get(task.queued_as) if task.queued_as else None
    session = row.session if row is not None else NO_SESSION
    item, what = facts.items.get(session, ("", "")) if session else ("", "")
    if row is None and task.status is TaskStatus.QUEUED and not facts.answered:
        state, why = TaskState.QUEUED, "the queue does not say how far it is"
    else:
        state, why = _state(task, row, [each for each in task.depends_on if each not in done], facts.paused)
    return TaskProgress(
        task,
        state,
        what if state is TaskState.PARKED and what else why,
        depth,
        worker=row.worker if row is not None else "",
        session=session,
        item=item,
        cost=facts.costs.get(session) if session else None,
        estimate=facts.estimates.get(task.id),
        complexity=complexity(task.intent, len(plan.tasks)),
    )


def _state(task: Task, row: QueuedTask | None, waits_for: Sequence[TaskId], paused: str) -> tuple[TaskState, str]:
    """Return the state of a task and why; `waits_for` are the tasks that it depends on and that are not done."""
    before = f"waits for {', '.join(waits_for)}" if waits_for else ""
    if row is None:
        match task.status:
            case TaskStatus.DONE:
                return TaskState.DONE, ""
            case TaskStatus.FAILED:
                return TaskState.FAILED, ""
            case TaskStatus.BLOCKED:
                return TaskState.BLOCKED, task.blocked_because
            case TaskStatus.IN_PROGRESS:
                return TaskState.HERE, "a session here has begun it"
            case TaskStatus.QUEUED:
                return TaskState.PLANNED, "the queue does not have it; dispatch again"
            case TaskStatus.PENDING:
                return TaskState.PLANNED, before or "not dispatched"
    if row.problem:
        why = f"the queue says {row.state}, which does not count: {row.problem}"
        # What the plan says was proved when it was written.
        return _PROVED.get(task.status, TaskState.UNPROVED), why
    match row.state:
        case QueueState.DONE:
            return TaskState.DONE, row.reason
        case QueueState.FAILED:
            return TaskState.FAILED, row.reason
        case QueueState.WITHDRAWN:
            return TaskState.CANCELLED, row.reason
        case QueueState.PARKED:
            return TaskState.PARKED, row.reason
        case QueueState.CLAIMED:
            return TaskState.RUNNING, ""
        case QueueState.QUEUED:
            if before:
                return TaskState.WAITING, before
            if row.session:
                return TaskState.QUEUED, row.reason or "goes on when a worker has a look"
            return (TaskState.NO_CAPACITY, paused) if paused else (TaskState.QUEUED, row.reason)


def _tree(tasks: Sequence[Task]) -> Iterator[tuple[Task, int]]:
    """Yield each task with its depth, below the last one of those it depends on."""
    known = {task.id for task in tasks}
    below: dict[TaskId | None, list[Task]] = {}
    for task in tasks:
        parents = [each for each in task.depends_on if each in known]
        below.setdefault(parents[-1] if parents else None, []).append(task)
    waiting = [(task, 0) for task in reversed(below.get(None, []))]
    while waiting:
        task, depth = waiting.pop()
        yield task, depth
        waiting += [(each, depth + 1) for each in reversed(below.get(task.id, []))]


class Cancelled(Struct, frozen=True):
    """Tasks that were taken back, and why others were not."""

    tasks: tuple[TaskId, ...] = ()
    left: tuple[TaskRemark, ...] = ()


class PlanWork(Protocol):
    """The tasks of the repository's plan in the queue. Every method may raise `PlanError` and `StorageError`."""

    async def progress(self) -> PlanProgress:
        """Return how the tasks stand; nothing is changed.

        A queue that does not answer is no error: what it said last is returned with the `problem`.
        """

    async def settle(self) -> None:
        """Write the status of each task that has ended in the queue to the plan."""

    async def prepare(self, wanted: Sequence[TaskId] = ()) -> Dispatch:
        """Return what a dispatch (of the tasks `wanted`, else of all) would queue; nothing is changed."""

    async def dispatch(self, shown: Dispatch, wanted: Sequence[TaskId] = ()) -> Dispatch:
        """Queue exactly what was shown by `prepare`, each task once, and return it.

        Raises `PlanError`, with nothing queued, if it would be something else now, and `TrustError` in a process that
        a command of the agent started.
        """

    async def cancel(self, wanted: Sequence[TaskId], reason: str = "") -> Cancelled:
        """Take tasks (none named: all that are left) back from the queue; what runs is stopped.

        Raises `TrustError` in a process that a command of the agent started.
        """

    async def close(self) -> None:
        """Give back what is held, such as connections."""
