"""Preparation of a dispatch: which tasks of a plan go into the queue, under which names, and why others do not."""

from base64 import b32encode
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Owner, Plan, Task, TaskStatus
from agent_workbench.core.ports.task_queue import ENDED, QueuedTask, QueueState
from agent_workbench.core.task_estimates import Estimate

NAME_CHARS = 50
"""Characters of a task's id in its name; a suffix follows."""
STATUS = {
    QueueState.DONE: TaskStatus.DONE,
    QueueState.FAILED: TaskStatus.FAILED,
    QueueState.WITHDRAWN: TaskStatus.BLOCKED,
}
"""Status in the plan of a task that has ended in the queue."""


class PlanApproval(Struct, frozen=True):
    """Approval of a task's definition by a person: the plan as `SESSION/PROPOSAL`, and who approved it."""

    plan: str
    by: str
    estimate: Estimate | None = None


class PreparedTask(Struct, frozen=True):
    """A task that can be queued. `definition` is what a worker gets; `approval` is None if nobody gave it.

    `replaces` has the names of queued tasks whose place it takes: what they wait for will never be done.
    """

    task: Task
    definition: Task
    approval: PlanApproval | None = None
    replaces: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The id in the queue."""
        return self.definition.id


class TaskRemark(Struct, frozen=True):
    """What is to be said of a task."""

    task: TaskId
    text: str


class Dispatch(Struct, frozen=True):
    """A prepared dispatch: the tasks in dependency order, those that are `queued` already, and why others are `left`.

    `unmet` are tasks whose needs no worker meets.
    """

    tasks: tuple[PreparedTask, ...] = ()
    queued: tuple[TaskId, ...] = ()
    left: tuple[TaskRemark, ...] = ()
    unmet: tuple[TaskRemark, ...] = ()

    @property
    def unapproved(self) -> tuple[TaskId, ...]:
        """The tasks whose definition nobody has approved."""
        return tuple(each.task.id for each in self.tasks if each.approval is None)

    @property
    def digest(self) -> str:
        """Digest of what would be queued; another plan has another one."""
        return sha256(msgspec.json.encode([each.definition for each in self.tasks])).hexdigest()


def prepare(
    plan: Plan,
    approvals: Mapping[TaskId, PlanApproval],
    rows: Mapping[str, QueuedTask],
    unmerged: Collection[TaskId],
    wanted: Sequence[TaskId] = (),
) -> Dispatch:
    """Return what a dispatch of the plan (or of the tasks `wanted`) would queue.

    `rows` are the tasks of the queue, `unmerged` the tasks done here whose commit is not merged: no worker has it.
    Raises `PlanError` for a wanted task that is not in the plan.
    """
    chosen = {plan.task(each).id for each in wanted} or {task.id for task in plan.tasks}
    preparing = _Preparing(plan, approvals, rows, unmerged, named=bool(wanted))
    for task in _ordered(plan):
        if task.id in chosen or preparing.is_stale(task):
            preparing.add(task)
    return Dispatch(tuple(preparing.tasks), tuple(preparing.queued), tuple(preparing.left))


class _Preparing:
    """The tasks that were looked at so far."""

    def __init__(
        self,
        plan: Plan,
        approvals: Mapping[TaskId, PlanApproval],
        rows: Mapping[str, QueuedTask],
        unmerged: Collection[TaskId],
        *,
        named: bool,
    ) -> None:
        self._plan = plan
        self._approvals = approvals
        self._rows = rows
        self._unmerged = unmerged
        self._named = named
        self.tasks: list[PreparedTask] = []
        self.queued: list[TaskId] = []
        self.left: list[TaskRemark] = []

    def add(self, task: Task) -> None:
        """Take the task up as what it is: ready for the queue, queued, or left."""
        if task.status is TaskStatus.DONE or (task.status is TaskStatus.FAILED and not self._named):
            return
        row = self._rows.get(task.queued_as)
        if task.status is TaskStatus.QUEUED and row is not None and not self.is_stale(task):
            if row.problem and not self._named:
                advice = f"`agent plan dispatch {task.id}` queues it again"
                self.left.append(TaskRemark(task.id, f"its end does not count: {row.problem}; {advice}"))
                return
            if not row.problem:
                self.queued.append(task.id)
                return
        try:
            self._check(task)
            before = self._names_before(task)
        except PlanError as problem:
            self.left.append(TaskRemark(task.id, str(problem)))
            return
        approval = self._approvals.get(task.id)
        lacks_row = task.status is TaskStatus.QUEUED and row is None
        name, replaces = (task.queued_as, ()) if lacks_row else self._free_name(task, approval, before)
        plan = approval.plan if approval is not None else "dispatch"
        definition = replace(task.definition, id=TaskId(name), depends_on=before, plan=plan)
        self.tasks.append(PreparedTask(task, definition, approval, replaces))

    def is_stale(self, task: Task) -> bool:
        """Return True if a queued task waits for others than those that it depends on now: they were queued anew."""
        row = self._rows.get(task.queued_as)
        if task.status is not TaskStatus.QUEUED or row is None:
            return False
        try:
            return _waits_for_others(row, self._names_before(task))
        except PlanError:
            return False

    def _check(self, task: Task) -> None:
        if task.owner is Owner.HUMAN:
            raise PlanError("it is for a person")
        if task.status is TaskStatus.BLOCKED:
            raise PlanError(f"it is blocked{f': {task.blocked_because}' if task.blocked_because else ''}")
        if task.status is TaskStatus.IN_PROGRESS:
            raise PlanError("a session here has begun it")

    def _names_before(self, task: Task) -> tuple[TaskId, ...]:
        """Return the queue's names of the tasks that must be done before; raise `PlanError` if one cannot be."""
        prepared = {each.task.id: each.name for each in self.tasks}
        named: dict[TaskId, TaskId] = {}
        for each in map(self._plan.task, task.depends_on):
            row = self._rows.get(each.queued_as)
            if each.id in prepared:
                named[each.id] = TaskId(prepared[each.id])
            elif each.status is TaskStatus.QUEUED and row is not None:
                named[each.id] = TaskId(each.queued_as)
            elif each.status is not TaskStatus.DONE:
                raise PlanError(f"it waits for {each.id}, which is {each.status} and not queued")
            elif row is not None and row.state is QueueState.DONE and not row.problem:
                named[each.id] = TaskId(each.queued_as)
            elif each.id in self._unmerged:
                raise PlanError(
                    f"the commit of {each.id} is not merged: no worker has it; `agent merge {each.id}` first"
                )
        # The commits of what comes earlier are in those of what comes later.
        implied = {id for each in named for id in _all_before(self._plan, each)}
        changing = [id for id in named if id not in implied and not self._plan.task(id).changes_nothing]
        if len(changing) > 1:
            raise PlanError(f"it begins with the commits of {' and '.join(changing)}: merge them when they are done")
        return tuple(named.values())

    def _free_name(
        self, task: Task, approval: PlanApproval | None, before: tuple[TaskId, ...]
    ) -> tuple[str, tuple[str, ...]]:
        """Return the name of a task, and the queued tasks that it replaces.

        It is made of the definition and its approval, so that the task is queued once.
        """
        text = msgspec.json.encode((task.definition, approval.plan if approval is not None else ""))
        name = f"{task.id[:NAME_CHARS]}-{b32encode(sha256(text).digest()).decode().lower()[:6]}"
        number, free = 1, name
        replaces = [task.queued_as] if self.is_stale(task) else []
        while (row := self._rows.get(free)) is not None:
            if _waits_for_others(row, before):
                replaces.append(free)
            elif row.state not in ENDED:
                break
            number += 1
            free = f"{name}-{number}"
        return free, tuple(dict.fromkeys(replaces))


def _waits_for_others(row: QueuedTask, before: tuple[TaskId, ...]) -> bool:
    """Return True if nobody began a queued task and it waits for others than these."""
    return row.state is QueueState.QUEUED and not row.session and row.depends_on != before


def _ordered(plan: Plan) -> list[Task]:
    """Return the tasks, each behind those that it depends on, else in the order of the plan."""
    ordered: dict[TaskId, Task] = {}
    rest = list(plan.tasks)
    while rest:
        task = next(each for each in rest if all(id in ordered for id in each.depends_on))
        ordered[task.id] = task
        rest.remove(task)
    return list(ordered.values())


def _all_before(plan: Plan, task: TaskId) -> set[TaskId]:
    """Return the tasks that a task depends on, also through others."""
    found: set[TaskId] = set()
    waiting = list(plan.task(task).depends_on)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += plan.task(each).depends_on
    return found
