"""Strict parser of plans and tasks in YAML. Errors name file, line and what was expected."""

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.command_lines import denial, pattern_fault
from agent_workbench.core.errors import ConfigError, PlanError
from agent_workbench.core.plan import Plan, Task, TaskEdit, TaskStatus, check_plan
from agent_workbench.core.skills import SkillEntry, check_named
from agent_workbench.core.yaml_documents import (
    DocumentError,
    Mark,
    Node,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    expected,
    is_nothing,
    join,
    read_mapping,
    read_value,
    unknown_key,
)

MAX_TASKS = 1000
VERSION = 1

Compose = Callable[[str], Node | None]

SUBTASK = re.compile(r"[1-9]\d*/[1-9]\d*", re.ASCII)
MAX_EDITS = 100
VERIFY = "verify"
EDITEDIT_KEYS = "{path, find, replace}, {path, content} or {diff}"
EDIT_KEYS = ({"path", "find", "replace"}, {"path", "content"}, {"diff"})


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


class VerifyCommand(Struct, frozen=True):
    """A command in the list `verify`."""

    command: str


def read_task(node: Node, path: str) -> Task:
    """Return the task that a mapping spells; raise `DocumentError`. `verify` is another name of `accept_tests`."""
    verify = node.get(VERIFY) if isinstance(node, YamlMapping) else None
    task = read_mapping(without_keys(node, {VERIFY}), Task, path)
    if not task.description.strip():
        raise expected(child(node, "description"), "some words", join(path, "description"))
    if task.subtask and not SUBTASK.fullmatch(task.subtask):
        raise expected(child(node, "subtask"), "a part of a whole such as 1/4", join(path, "subtask"))
    edits = child(node, "edits")
    if len(task.edits) > MAX_EDITS:
        problem = f"expected at most {MAX_EDITS} edits, found {len(task.edits)}"
        raise DocumentError(edits.start, f"{join(path, 'edits')}: {problem}")
    for number, edit in enumerate(task.edits):
        _check_edit(item(edits, number), edit, join(path, f"edits[{number}]"))
    verified = () if verify is None or is_nothing(verify) else _verify_commands(verify, join(path, VERIFY))
    whole = replace(task, accept_tests=(*task.accept_tests, *verified))
    if task.status is not TaskStatus.DONE:
        _check_patterns(node, task, path)
        check_commands(node, whole, path)
    return whole


def check_commands(node: Node, task: Task, path: str) -> None:
    """Raise `DocumentError` for an acceptance command that the task itself denies."""
    tests, patterns = child(node, "accept_tests"), task.constraints.denylisted_commands
    own = len(tests.items) if isinstance(tests, YamlSequence) else 0
    _check_denied(tests, task.accept_tests[:own], patterns, join(path, "accept_tests"))
    _check_denied(child(node, VERIFY), task.accept_tests[own:], patterns, join(path, VERIFY))


def check_task_skills(node: Node, known: Sequence[SkillEntry]) -> None:
    """Raise `DocumentError` for a skill of a task that is unknown or cannot be used."""
    named = child(node, "applicable_skills")
    for each in named.items if isinstance(named, YamlSequence) else ():
        if isinstance(each, YamlScalar):
            try:
                check_named(known, (each.text,))
            except ConfigError as error:
                raise DocumentError(each.start, str(error), error.advice) from error


def without_keys(node: Node, keys: set[str]) -> Node:
    """Return a mapping without some of its keys; any other node as it is."""
    if not isinstance(node, YamlMapping):
        return node
    return YamlMapping(
        tuple((key, value) for key, value in node.entries if key.text not in keys), node.flow, node.start, node.end
    )


def item(node: Node, number: int) -> Node:
    """Return an item of a list, the node itself if it is none."""
    return node.items[number] if isinstance(node, YamlSequence) else node


def child(node: Node, key: str) -> Node:
    """Return the value of a key; a value that was left out is at the place of the mapping."""
    found = node.get(key) if isinstance(node, YamlMapping) else None
    return found if found is not None else YamlScalar("", True, node.start, node.end)


def _verify_commands(node: Node, path: str) -> tuple[str, ...]:
    if not isinstance(node, YamlSequence):
        raise expected(node, "a list of commands", path)
    return tuple(_verify_command(each, f"{path}[{number}]") for number, each in enumerate(node.items))


def _verify_command(node: Node, path: str) -> str:
    if isinstance(node, YamlMapping):
        command, place = read_mapping(node, VerifyCommand, path).command, child(node, "command")
    else:
        command, place = str(read_value(node, str, path)), node
    if not command.strip():
        raise expected(place, "a command", path)
    return command


def _check_edit(node: Node, edit: TaskEdit, path: str) -> None:
    """Refuse an edit that has none of the forms, or that changes nothing."""
    given = {key.text for key, value in node.entries if not is_nothing(value)} if isinstance(node, YamlMapping) else {}
    if set(given) not in EDIT_KEYS:
        names = ", ".join(sorted(given)) or "nothing"
        raise DocumentError(node.start, f"{path}: expected {EDITEDIT_KEYS}, found {names}")
    for key in ("path", "find", "diff"):
        if key in given and not (getattr(edit, key) or "").strip():
            raise expected(child(node, key), "some text", f"{path}.{key}")
    if edit.find is not None and edit.find == edit.replace:
        raise DocumentError(child(node, "replace").start, f"{path}.replace: expected another text than `find`")


def _check_patterns(node: Node, task: Task, path: str) -> None:
    """Refuse a denied command that is no glob."""
    for number, pattern in enumerate(task.constraints.denylisted_commands):
        wrong, advice = pattern_fault(pattern)
        if wrong:
            place = item(child(child(node, "constraints"), "denylisted_commands"), number).start
            key = join(path, f"constraints.denylisted_commands[{number}]")
            raise DocumentError(place, f"{key}: {wrong}", advice)


def _check_denied(node: Node, lines: Sequence[str], patterns: Sequence[str], path: str) -> None:
    """Refuse an acceptance command that the task itself denies."""
    for number, line in enumerate(lines):
        if why := denial(line, patterns):
            advice = "change the command, or denylisted_commands of the task"
            raise DocumentError(item(node, number).start, f"{path}[{number}]: {why}", advice)
