"""The issue that a task belongs to, from its `source`, its parent issue or its id."""

import re

from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.queue.source import read_source

_NUMBER = "([1-9][0-9]{0,8})"
_TASK_ID = re.compile(rf"task-{_NUMBER}(?:[._-].*)?", re.ASCII)
_PARENT = re.compile(rf"#?{_NUMBER}", re.ASCII)


def issue_of(task: Task, repo: str) -> int | None:
    """Return the number of the task's issue in the forge's repository `repo`, None if it has none there.

    A source counts first: a project's name in it stands for the repository. Then the number of `parent_issue` counts,
    and then that of an id such as `task-7` or `task-7-a`. A task that somebody's commit brought has no issue.
    """
    if task.origin is TaskOrigin.REPOSITORY:
        return None
    if task.source:
        source = read_source(task.source.strip())
        elsewhere = source is None or ("/" in source.repo and source.repo.lower() != repo.lower())
        elsewhere = elsewhere or (source is not None and source.forge == "github")
        return None if source is None or elsewhere else source.number
    match = _PARENT.fullmatch(task.parent_issue.strip()) if task.parent_issue else _TASK_ID.fullmatch(task.id)
    return int(match[1]) if match else None


def tag_name(task: str) -> str:
    """Return the name of the tag for a task that is done: `task-7-done`, also for an id without the prefix."""
    return f"{task}-done" if task.startswith("task-") else f"task-{task}-done"
