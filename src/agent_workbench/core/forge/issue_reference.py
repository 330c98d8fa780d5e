"""The issue that a task belongs to, from its `source`, its parent issue or its id."""

import re

from agent_workbench.core.plan import Task

_NUMBER = "([1-9][0-9]{0,8})"
_KIND = "(?:gitea|forgejo|github)"
_SOURCE = re.compile(rf"{_KIND}:([^:#\s/]+/[^:#\s/]+)#{_NUMBER}", re.ASCII | re.IGNORECASE)
_PROJECT_SOURCE = re.compile(rf"{_KIND}:[^:#\s/]+:{_NUMBER}", re.ASCII | re.IGNORECASE)
_TASK_ID = re.compile(rf"task-{_NUMBER}(?:[._-].*)?", re.ASCII)
_PARENT = re.compile(rf"#?{_NUMBER}", re.ASCII)


def issue_of(task: Task, repo: str) -> int | None:
    """Return the number of the task's issue in the forge's repository `repo`, None if it has none there.

    `source` is `gitea:owner/repo#7`, or `gitea:project:7` where the project stands for the repository. Without a
    source the number of `parent_issue` counts, then that of an id such as `task-7` or `task-7-a`.
    """
    if task.source:
        if match := _SOURCE.fullmatch(task.source.strip()):
            return int(match[2]) if match[1].lower() == repo.lower() else None
        match = _PROJECT_SOURCE.fullmatch(task.source.strip())
    elif task.parent_issue:
        match = _PARENT.fullmatch(task.parent_issue.strip())
    else:
        match = _TASK_ID.fullmatch(task.id)
    return int(match[1]) if match else None


def tag_name(task: str) -> str:
    """Return the name of the tag for a task that is done: `task-7-done`, also for an id without the prefix."""
    return f"{task}-done" if task.startswith("task-") else f"task-{task}-done"
