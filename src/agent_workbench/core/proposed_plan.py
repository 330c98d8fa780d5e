"""Plan that the model proposed: its tasks, which of them are taken, and their effect on the existing plan."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task, TaskStatus, check_plan, next_id
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.task_estimates import Complexity, Estimate, complexity


class ProposedTask(RecordedValue, frozen=True):
    """A proposed task; one that is not `taken` is left out when the plan is approved.

    `estimate` is None where nothing was recorded that could tell, and for tasks that the user wrote.
    """

    task: Task
    taken: bool = True
    estimate: Estimate | None = None


class ProposedPlan(RecordedValue, frozen=True):
    """Tasks that reach `goal`, in order. They are appended to the plan, or replace it (`replaces`).

    `checks`: the tasks are in the plan already, and only their acceptance commands are written. `rest`: they replace
    those tasks of the plan that are not over. `paid`: paid endpoints may be needed.
    """

    goal: str
    tasks: tuple[ProposedTask, ...] = ()
    replaces: bool = False
    checks: bool = False
    rest: bool = False
    paid: bool = False

    def complexity(self, task: Task) -> Complexity:
        """Return the complexity of one of the proposed tasks."""
        return complexity(task.intent, sum(each.taken for each in self.tasks))

    @property
    def taken(self) -> tuple[Task, ...]:
        """The taken tasks in order; a dependency on a task that is left out is dropped."""
        chosen = [each.task for each in self.tasks if each.taken]
        ids = {task.id for task in chosen}
        return tuple(replace(task, depends_on=tuple(id for id in task.depends_on if id in ids)) for task in chosen)

    def arranged(self, order: Sequence[TaskId], left: Collection[TaskId], *, replaces: bool) -> "ProposedPlan":
        """Return the plan in another order, with the tasks `left` left out; raise `PlanError` for other tasks."""
        known = {each.task.id: each for each in self.tasks}
        if len(order) != len(known) or set(order) != set(known) or not set(left) <= set(known):
            raise PlanError("the proposed plan has other tasks now", advice="look at it again")
        tasks = tuple(replace(known[id], taken=id not in left) for id in order)
        return replace(self, tasks=tasks, replaces=replaces and not (self.checks or self.rest))

    def edited(self, tasks: Sequence[Task]) -> "ProposedPlan":
        """Return the plan with `tasks` as its taken ones; those that are left out keep their places."""
        before = {each.task.id: each for each in self.tasks}
        rest = [
            ProposedTask(task, estimate=old.estimate if (old := before.get(task.id)) and _is_alike(old, task) else None)
            for task in tasks
        ]
        for place, each in enumerate(self.tasks):
            if not each.taken:
                rest.insert(place, each)
        return replace(self, tasks=tuple(rest))

    def numbered_after(self, existing: Plan) -> "ProposedPlan":
        """Return the plan with new ids for all its tasks if one of them is an id of the existing plan."""
        ids = {task.id for task in existing.tasks}
        if self.checks or not any(each.task.id in ids for each in self.tasks):
            return self
        new: dict[TaskId, TaskId] = {}
        taken = existing.tasks
        for each in self.tasks:
            new[each.task.id] = next_id(taken)
            taken = (*taken, replace(each.task, id=new[each.task.id]))
        tasks = (
            replace(each.task, id=new[each.task.id], depends_on=tuple(new[id] for id in each.task.depends_on))
            for each in self.tasks
        )
        return replace(
            self,
            tasks=tuple(replace(old, task=task) for task, old in zip(tasks, self.tasks, strict=True)),
        )

    def kept(self, existing: Plan) -> tuple[Task, ...]:
        """Return the tasks of the plan that a plan for the rest keeps: those that are over."""
        over = [task for task in existing.tasks if task.status in (TaskStatus.DONE, TaskStatus.FAILED)]
        ids = {task.id for task in over}
        return tuple(replace(task, depends_on=tuple(id for id in task.depends_on if id in ids)) for task in over)

    def check(self, existing: Plan) -> None:
        """Raise `PlanError` if the existing plan cannot take it: an id twice, a cycle, or a running task replaced."""
        if len({each.task.id for each in self.tasks}) < len(self.tasks):
            raise PlanError("two of the proposed tasks have the same id", advice="give one of them another id")
        if self.checks:
            for task in self.taken:
                existing.task(task.id)
            return
        running = [task.id for task in existing.tasks if task.status is TaskStatus.IN_PROGRESS]
        if (self.replaces or self.rest) and running:
            raise PlanError(
                f"{running[0]} is in progress, so the plan cannot be replaced", advice="finish or abort it, or append"
            )
        before = () if self.replaces else self.kept(existing) if self.rest else existing.tasks
        if problems := check_plan(Plan((*before, *self.taken))):
            raise PlanError("; ".join(problems), advice="change the proposed tasks")


def _is_alike(proposed: ProposedTask, edited: Task) -> bool:
    """Return True if the estimate of a task holds for what the user made of it."""
    return proposed.task.intent is edited.intent
