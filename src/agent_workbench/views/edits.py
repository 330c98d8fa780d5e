"""Edits that a task names, a line each."""

from agent_workbench.core.plan import Task, TaskEdit
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize_line

MOST_SHOWN = 20


def edit_lines(task: Task) -> tuple[str, ...]:
    """Return what each edit of a task does; of many the first ones and the number of the rest."""
    more = len(task.edits) - MOST_SHOWN
    lines = tuple(map(_edit_line, task.edits[:MOST_SHOWN]))
    return (*lines, f"and {more} more") if more > 0 else lines


def _edit_line(edit: TaskEdit) -> str:
    if edit.diff is not None:
        named = [line[4:].split("\t")[0] for line in edit.diff.splitlines() if line.startswith(("+++ ", "--- "))]
        paths = dict.fromkeys(name.removeprefix("a/").removeprefix("b/") for name in named if name != "/dev/null")
        return f"diff of {sanitize_line(', '.join(paths) or 'no file', 200)}"
    path = sanitize_line(edit.path, 200)
    if edit.content is not None:
        lines = len(edit.content.splitlines())
        return f"{path}: write {lines} line{'' if lines == 1 else 's'}"
    return sanitize_line(f"{path}: replace {quoted(edit.find or '')} with {quoted(edit.replace or '')}")
