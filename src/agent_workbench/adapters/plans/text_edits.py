"""In-place edits of a plan's text that change only the edited node."""

from collections.abc import Sequence

from agent_workbench.adapters.plans.plan_parser import PlanText
from agent_workbench.adapters.plans.plan_renderer import render_flow, render_quoted, render_tasks, render_text
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.yaml_documents.nodes import (
    Node,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    after_lines,
    line_end,
    line_start,
    with_lines,
)
from agent_workbench.core.yaml_documents.typed_values import is_nothing

REASON = "blocked_because"
QUEUED_AS = "queued_as"


def with_status(before: PlanText, wanted: TaskId, status: TaskStatus) -> str:
    """Return the text with the task's status changed, or inserted after its id."""
    text, item = before.text, _item(before, wanted)
    node = item.get("status")
    if isinstance(node, YamlScalar):
        start, end = node.start.index, node.end.index
        quote = text[start] if text[start:end][:1] in ("'", '"') else ""
        space = "" if text[start - 1].isspace() else " "
        return f"{text[:start]}{space}{quote}{status}{quote}{text[end:]}"
    key, name = next((key, value) for key, value in item.entries if key.text == "id")
    if item.flow:
        end = item.entries[-1][1].end.index
        quote = text[key.start.index] if text[key.start.index] in "'\"" else ""
        return f"{text[:end]}, {quote}status{quote}: {quote}{status}{quote}{text[end:]}"
    return _insert_after(text, name, f"{' ' * (key.start.column - 1)}status: {status}\n")


def with_reason(before: PlanText, wanted: TaskId, reason: str, name: str = REASON) -> str:
    """Return the text with a key after the status of a task, such as why it is blocked; an empty value removes it."""
    text, item = before.text, _item(before, wanted)
    found = next(((key, value) for key, value in item.entries if key.text == name), None)
    if found is None:
        return _reason_added(text, item, reason, name) if reason else text
    key, node = found
    start, end = node.start.index, node.end.index
    if reason or item.flow:
        space = "" if text[start - 1].isspace() else " "
        return f"{text[:start]}{space}{render_quoted(reason)}{text[end:]}"
    return text[: line_start(text, key.start.index)] + text[after_lines(text, node) :]


def _reason_added(text: str, item: YamlMapping, reason: str, name: str) -> str:
    key, status = next((key, value) for key, value in item.entries if key.text == "status")
    if item.flow:
        end = item.entries[-1][1].end.index
        quote = text[key.start.index] if text[key.start.index] in "'\"" else ""
        return f"{text[:end]}, {quote}{name}{quote}: {render_quoted(reason)}{text[end:]}"
    return _insert_after(text, status, f"{' ' * (key.start.column - 1)}{name}: {render_text(reason)}\n")


def with_checks(before: PlanText, wanted: TaskId, commands: Sequence[str]) -> str:
    """Return the text with the acceptance commands of a task that has none."""
    text, item = before.text, _item(before, wanted)
    flow = f"[{', '.join(map(render_quoted, commands))}]"
    empty = item.get("accept_tests")
    if empty is not None:
        space = "" if text[empty.start.index - 1].isspace() else " "
        return f"{text[: empty.start.index]}{space}{flow}{text[empty.end.index :]}"
    key, words = next((key, value) for key, value in item.entries if key.text == "description")
    if item.flow:
        end = item.entries[-1][1].end.index
        quote = text[key.start.index] if text[key.start.index] in "'\"" else ""
        return f"{text[:end]}, {quote}accept_tests{quote}: {flow}{text[end:]}"
    indent = " " * (key.start.column - 1)
    lines = "".join(f"{indent}  - {render_text(each)}\n" for each in commands)
    return _insert_after(text, words, f"{indent}accept_tests:\n{lines}")


def with_tasks(before: PlanText, tasks: Sequence[Task]) -> str:
    """Return the text with tasks appended to its list."""
    text, listing = before.text, before.listing
    if listing is None:
        return _first_tasks(before, tasks)
    if not listing.items:
        start, end = listing.start.index, listing.end.index
        rest = line_end(text, end)
        return with_lines(text[:start].rstrip(" ") + text[end:rest], render_tasks(tasks, 2), text[rest:])
    if listing.flow:
        end = listing.items[-1].end.index
        return text[:end] + "".join(f", {render_flow(task)}" for task in tasks) + text[end:]
    added = render_tasks(tasks, listing.start.column - 1)
    if _is_last(before.root, listing):
        return with_lines(text, added, "")
    return _insert_after(text, listing, added)


def _first_tasks(before: PlanText, tasks: Sequence[Task]) -> str:
    text, added = before.text, render_tasks(tasks, 2)
    root = before.root
    if isinstance(root, YamlMapping) and (empty := root.get("tasks")) is not None and is_nothing(empty):
        place = empty.start.index
        if empty.end.index > place:  # `~` or `null`
            text = text[:place].rstrip(" ") + text[empty.end.index :]
        rest = line_end(text, place)
        return with_lines(text[:rest], added, text[rest:])
    return with_lines(text, f"tasks:\n{added}", "")


def _item(before: PlanText, wanted: TaskId) -> YamlMapping:
    before.plan.task(wanted)
    for item in before.listing.items if before.listing is not None else ():
        if isinstance(item, YamlMapping) and isinstance(name := item.get("id"), YamlScalar) and name.text == wanted:
            return item
    raise AssertionError("a plan has a task that its text lacks")


def _insert_after(text: str, node: Node, lines: str) -> str:
    place = after_lines(text, node)
    return with_lines(text[:place], lines, text[place:])


def _is_last(root: Node | None, listing: YamlSequence) -> bool:
    return root is listing or (isinstance(root, YamlMapping) and not root.flow and root.entries[-1][1] is listing)
