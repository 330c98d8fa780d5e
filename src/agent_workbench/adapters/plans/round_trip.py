"""Round trip of a whole plan through ruamel.yaml, with comments and order, where no edit in place is possible."""

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from agent_workbench.adapters.plans.plan_renderer import render_tasks
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.yaml_documents.nodes import lost_comment, with_line_ends_of

if TYPE_CHECKING:
    from ruamel.yaml.comments import CommentedMap, CommentedSeq


def with_status(text: str, wanted: TaskId, status: TaskStatus, keys: Mapping[str, str]) -> str:
    """Return the text with the status and other keys of a task set; raise `PlanError` if that fails."""

    def change(tasks: "CommentedSeq") -> None:
        for task in tasks:
            if task["id"] == wanted:
                task["status"] = str(status)
                for key, said in keys.items():
                    task.pop(key, None)
                    if said:
                        task[key] = said

    return _rewrite(text, change)


def with_checks(text: str, wanted: TaskId, commands: Sequence[str]) -> str:
    """Return the text with the acceptance commands of a task set; raise `PlanError` if that fails."""

    def change(tasks: "CommentedSeq") -> None:
        for task in tasks:
            if task["id"] == wanted:
                task["accept_tests"] = list(commands)

    return _rewrite(text, change)


def with_tasks(text: str, added: Sequence[Task]) -> str:
    """Return the text with tasks appended; raise `PlanError` if that fails."""

    def change(tasks: "CommentedSeq") -> None:
        from ruamel.yaml import YAML

        tasks.extend(YAML(typ="rt").load(render_tasks(added, 0)))

    return _rewrite(text, change)


def with_order(text: str, wanted: Sequence[TaskId]) -> str:
    """Return the text with its tasks in this order; raise `PlanError` if that fails."""

    def change(tasks: "CommentedSeq") -> None:
        tasks[:] = sorted(tasks, key=lambda task: wanted.index(task["id"]))

    return _rewrite(text, change)


def _rewrite(text: str, change: "Callable[[CommentedSeq], None]") -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedSeq
    from ruamel.yaml.error import YAMLError

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 10_000
    stream = StringIO()
    try:
        document: CommentedMap | CommentedSeq = yaml.load(text)
        change(document if isinstance(document, CommentedSeq) else document.setdefault("tasks", CommentedSeq()))
        yaml.dump(document, stream)
    except YAMLError as error:
        raise PlanError(f"this YAML cannot be rewritten: {error}", advice="edit the plan by hand") from error
    if lost := lost_comment(text, stream.getvalue()):
        raise PlanError(f"the comment {lost[:60]!r} would be lost", advice="edit the plan by hand")
    return with_line_ends_of(text, stream.getvalue())
