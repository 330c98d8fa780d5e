"""Parser of a queue file: one task in YAML, with narrow bounds where it sets none."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.plans.plan_parser import (
    VERIFY,
    Compose,
    check_commands,
    check_task_skills,
    child,
    read_task,
)
from agent_workbench.adapters.plans.plan_renderer import Value, render_mapping, task_fields
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TASK_ID, TaskId
from agent_workbench.core.plan import Constraints, PathScope, Task, TaskOrigin
from agent_workbench.core.skills import SkillEntry
from agent_workbench.core.task_result import FORMS, names_forge, read_source
from agent_workbench.core.yaml_documents import (
    DocumentError,
    Mark,
    Node,
    YamlMapping,
    YamlScalar,
    expected,
    is_nothing,
    read_value,
    unknown_key,
)

KEYS = (
    *("id", "goal", "description", "suggested_approach", "priority", "edits", VERIFY, "accept_tests"),
    *("scope", "constraints", "budget", "applicable_skills", "source", "parent_issue", "subtask"),
    *("intent", "service", "needs", "depends_on", "plan"),
)
SCOPE = PathScope(("src/**",), ("src/**", "tests/**"))
CONSTRAINTS = Constraints(
    max_files_changed=10,
    max_diff_bytes=50_000,
    timeout_seconds=300.0,
    denylisted_commands=("rm -rf", "git push.*--force"),
)
SECONDS_A_MINUTE = 60.0
_OUTSIDE_IDS = re.compile(r"[^A-Za-z0-9_-]+")


class QueueFile(Struct, frozen=True):
    """A task as a queue file spells it, and its `priority`; a higher one is done first.

    `sets_id`: the text has an `id` of its own; else the file's name gives it.
    """

    task: Task
    priority: int = 0
    sets_id: bool = False


def read_queued(
    text: str, origin: TaskOrigin, name: str, compose: Compose, skills: Sequence[SkillEntry] | None = None
) -> QueueFile:
    """Return the task in the text of a queue file `name`, from which it has its id unless it sets one.

    `timeout_seconds` bounds each of its commands, and all its work. A task of an approved plan has the bounds that were
    approved. Only with `skills` are their names checked. Raises `PlanError` that begins with `name:line:column:`.
    """
    try:
        root = compose(text)
        if not isinstance(root, YamlMapping):
            start = Mark(0, 1, 1)
            raise expected(root or YamlScalar("", True, start, start), "a mapping with `goal` or `description`", "")
        for key, _ in root.entries:
            if key.text not in KEYS:
                raise unknown_key(key, KEYS, "")
        task = read_task(_completed(root, name), "")
        _check_source(root, task)
        if skills is not None:
            check_task_skills(root, skills)
        priority = child(root, "priority")
        first = 0 if is_nothing(priority) else int(str(read_value(priority, int, "priority")))
        bounded = replace(task if task.plan else _bounded(root, task), origin=origin)
        check_commands(root, bounded, "")
        return QueueFile(bounded, first, not is_nothing(child(root, "id")))
    except DocumentError as fault:
        raise PlanError(fault.in_file(name), advice=fault.advice, page="reference/queue.md") from fault


def render_queued(task: Task) -> str:
    """Return a queue file with the words, scope and checks of a task; its name becomes the id."""
    scope = {
        "allowed_write_globs": task.scope.allowed_write_globs,
        "allowed_read_globs": task.scope.allowed_read_globs,
    }
    said: dict[str, Value] = {
        "description": task.description,
        "goal": task.goal,
        VERIFY: task.accept_tests,
        "scope": scope,
    }
    return render_mapping({key: value for key, value in said.items() if value})


def render_dispatched(task: Task) -> str:
    """Return the queue file of a plan's task, with everything that was approved."""
    known = task_fields(task)
    return render_mapping({key: known[key] for key in KEYS if key in known})


def id_for(name: str) -> TaskId:
    """Return the task id for a queue file: its name without the suffix, made to fit where it does not."""
    own = PurePosixPath(name).name
    stem = own.rpartition(".")[0] or own
    if TASK_ID.fullmatch(stem) and ".." not in stem and not stem.endswith((".", ".lock")):
        return TaskId(stem)
    words = _OUTSIDE_IDS.sub("-", stem).strip("-")[:40]
    # Two names that differ only in characters that an id cannot have are two tasks.
    digest = hashlib.sha256(stem.encode("utf-8", "surrogateescape")).hexdigest()[:6]
    return TaskId("-".join(filter(None, ("Q", words, digest))))


def _completed(root: YamlMapping, name: str) -> Node:
    """Return the mapping with an id, and with a description: the goal where it has none."""
    goal, said = child(root, "goal"), child(root, "description")
    left_out = {"priority"} | ({"goal", "description"} if is_nothing(said) else set())
    added: list[tuple[YamlScalar, Node]] = []
    if is_nothing(child(root, "id")):
        left_out.add("id")
        added.append((_scalar("id", root), _scalar(id_for(name), root)))
    if is_nothing(said):
        if is_nothing(goal):
            raise DocumentError(root.start, "expected the key 'goal' or 'description', found neither")
        added.append((_scalar("description", root), goal))
    kept = tuple(entry for entry in root.entries if entry[0].text not in left_out)
    return YamlMapping((*added, *kept), root.flow, root.start, root.end)


def _bounded(root: YamlMapping, task: Task) -> Task:
    """Return the task with the bounds of queue tasks where its file says nothing."""
    scope, constraints = child(root, "scope"), child(root, "constraints")
    narrow = {name: value for name, value in _values(SCOPE) if is_nothing(child(scope, name))}
    bounds = {
        name: value
        for name, value in _values(CONSTRAINTS)
        if value is not None and is_nothing(child(constraints, name))
    }
    limits = replace(task.constraints, **bounds)
    minutes = task.budget.minutes
    whole = None if limits.timeout_seconds is None else limits.timeout_seconds / SECONDS_A_MINUTE
    least = min((each for each in (minutes, whole) if each is not None), default=None)
    return replace(
        task,
        scope=replace(task.scope, **narrow),
        constraints=limits,
        budget=replace(task.budget, minutes=least),
    )


def _values(bounds: Struct) -> list[tuple[str, object]]:
    return [(name, getattr(bounds, name)) for name in bounds.__struct_fields__]


def _check_source(root: YamlMapping, task: Task) -> None:
    if names_forge(task.source) and read_source(task.source) is None:
        raise expected(child(root, "source"), FORMS, "source")


def _scalar(text: str, root: YamlMapping) -> YamlScalar:
    return YamlScalar(text, False, root.start, root.start)
