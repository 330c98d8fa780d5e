"""Changing a plan whose spelling no edit in place fits: the whole text is written anew, comments and order kept."""

from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from agent_workbench.adapters.plans.plan_renderer import render_tasks
from agent_workbench.adapters.plans.text_edits import REASON
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.yaml_documents.rewrite import lost_comment, with_line_ends_of

if TYPE_CHECKING:
    from ruamel.yaml.comments import CommentedMap, CommentedSeq


def with_status(text: str, wanted: TaskId, status: TaskStatus, reason: str) -> str:
    """Return the plan's text with the task's status and its reason set; raise `PlanError` where the text resists."""

    def change(tasks: "CommentedSeq") -> None:
        for task in tasks:
            if task["id"] == wanted:
                task["status"] = str(status)
                task.pop(REASON, None)
                if reason:
                    task[REASON] = reason

    return _rewritten(text, change)


def with_tasks(text: str, added: Sequence[Task]) -> str:
    """Return the plan's text with the tasks at the end of its list; raise `PlanError` where the text resists."""

    def change(tasks: "CommentedSeq") -> None:
        from ruamel.yaml import YAML

        tasks.extend(YAML(typ="rt").load(render_tasks(added, 0)))

    return _rewritten(text, change)


def with_order(text: str, wanted: Sequence[TaskId]) -> str:
    """Return the plan's text with its tasks in this order; raise `PlanError` where the text resists."""

    def change(tasks: "CommentedSeq") -> None:
        tasks[:] = sorted(tasks, key=lambda task: wanted.index(task["id"]))

    return _rewritten(text, change)


def _rewritten(text: str, change: "Callable[[CommentedSeq], None]") -> str:
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
        raise PlanError(f"this YAML cannot be written anew: {error}") from error
    if lost := lost_comment(text, stream.getvalue()):
        raise PlanError(f"the comment {lost[:60]!r} would be lost")
    return with_line_ends_of(text, stream.getvalue())
