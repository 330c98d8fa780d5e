"""Strict parser of plans in YAML. Errors name file, line and what was expected."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from agent_workbench.adapters.plans.task_parser import check_task_skills, child, read_task
from agent_workbench.core.errors import PlanError
from agent_workbench.core.plan import Plan, Task, check_plan
from agent_workbench.core.skills import SkillEntry
from agent_workbench.core.yaml_documents import (
    DocumentError,
    Mark,
    Node,
    YamlMapping,
    YamlSequence,
    expected,
    is_nothing,
    read_value,
    unknown_key,
)

MAX_TASKS = 1000
VERSION = 1

Compose = Callable[[str], Node | None]


class PlanText(Struct, frozen=True):
    """A plan with its text and its YAML nodes."""

    text: str
    root: Node | None
    plan: Plan

    @property
    def listing(self) -> YamlSequence | None:
        """The list of tasks, None if there is none yet."""
        node = self.root.get("tasks") if isinstance(self.root, YamlMapping) else self.root
        return node if isinstance(node, YamlSequence) else None


def read_plan(text: str, name: str, compose: Compose) -> PlanText:
    """Return the plan in `text`; `compose` parses YAML. Raises `PlanError` that begins with `name:line:column:`."""
    try:
        root = compose(text)
        return PlanText(text, root, _plan(root))
    except DocumentError as fault:
        raise PlanError(fault.in_file(name), advice=fault.advice) from fault


def check_skills(read: PlanText, name: str, skills: Iterable[SkillEntry]) -> Plan:
    """Return the plan; raise `PlanError` with the position of a skill that is unknown or cannot be used."""
    known = tuple(skills)
    try:
        for item in read.listing.items if read.listing is not None else ():
            check_task_skills(item, known)
    except DocumentError as fault:
        raise PlanError(fault.in_file(name), advice=fault.advice) from fault
    return read.plan


def _plan(root: Node | None) -> Plan:
    if root is None or is_nothing(root):
        return Plan()
    if isinstance(root, YamlSequence):
        return Plan(_tasks(root))
    if not isinstance(root, YamlMapping):
        raise expected(root, "a mapping with `tasks`, or a list of tasks", "")
    for key, _ in root.entries:
        if key.text not in ("version", "goal", "tasks"):
            raise unknown_key(key, ("version", "goal", "tasks"), "")
    _check_version(root.get("version"))
    goal, tasks = root.get("goal"), root.get("tasks")
    return Plan(
        _tasks(tasks) if tasks is not None and not is_nothing(tasks) else (),
        str(read_value(goal, str, "goal")) if goal is not None and not is_nothing(goal) else "",
    )


def _check_version(node: Node | None) -> None:
    if node is not None and read_value(node, int, "version") != VERSION:
        raise expected(node, str(VERSION), "version", "this version of the workbench reads plans of version 1")


def _tasks(node: Node) -> tuple[Task, ...]:
    if not isinstance(node, YamlSequence):
        raise expected(node, "a list of tasks", "tasks")
    if len(node.items) > MAX_TASKS:
        raise DocumentError(node.start, f"tasks: expected at most {MAX_TASKS} tasks, found {len(node.items)}")
    tasks = tuple(read_task(item, f"tasks[{number}]") for number, item in enumerate(node.items))
    _check_together(node, tasks)
    return tasks


def _check_together(node: YamlSequence, tasks: tuple[Task, ...]) -> None:
    places: dict[str, Mark] = {}
    for item, task in zip(node.items, tasks, strict=True):
        place = child(item, "id").start
        if task.id in places:
            raise DocumentError(place, f"task id {task.id} is used twice, first on line {places[task.id].line}")
        places[task.id] = place
    for item, task in zip(node.items, tasks, strict=True):
        for each in task.depends_on:
            if each not in places:
                raise DocumentError(
                    child(item, "depends_on").start,
                    f"task {task.id} depends on {each}, which is not in the plan",
                    f"tasks of the plan: {', '.join(places)}",
                )
    for problem in check_plan(Plan(tasks)):
        raise DocumentError(node.start, problem, "remove one of the dependencies")
