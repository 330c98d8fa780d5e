"""Edits of a plan's text that change only the edited node."""

from collections.abc import Sequence

from agent_workbench.adapters.plans.plan_parser import PlanText
from agent_workbench.adapters.plans.plan_renderer import render_flow, render_quoted, render_tasks, render_text
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.yaml_documents import (
    Node,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    after_lines,
    is_nothing,
    last_scalar,
    line_end,
    line_start,
    with_flow_item,
    with_last_lines,
    with_lines,
    with_value,
)

REASON = "blocked_because"
QUEUED_AS = "queued_as"


def with_status(before: PlanText, wanted: TaskId, status: TaskStatus) -> str:
    """Return the text with the task's status changed, or inserted after its id."""
    text, item = before.text, _item(before, wanted)
    node = item.get("status")
    if not isinstance(node, YamlScalar):
        return _with_key(text, item, "id", "status", status)
    quote = text[node.start.index : node.end.index][:1]
    return with_value(text, node, f"{quote}{status}{quote}" if quote in {"'", '"'} else status)


def with_reason(before: PlanText, wanted: TaskId, reason: str, name: str = REASON) -> str:
    """Return the text with a key after the status of a task, such as why it is blocked; an empty value removes it."""
    text, item = before.text, _item(before, wanted)
    found = next(((key, value) for key, value in item.entries if key.text == name), None)
    if found is None:
        after = "status" if item.get("status") is not None else "id"
        return _with_key(text, item, after, name, render_text(reason), render_quoted(reason)) if reason else text
    key, node = found
    if reason or item.flow:
        return with_value(text, node, render_quoted(reason))
    begin, rest = line_start(text, key.start.index), text[after_lines(text, node) :]
    head = text[begin : key.start.index].partition("?")[0]
    return text[:begin] + (head + rest.lstrip(" ") if "-" in head else rest)  # behind the task's dash


def with_checks(before: PlanText, wanted: TaskId, commands: Sequence[str]) -> str:
    """Return the text with the acceptance commands of a task that has none."""
    text, item = before.text, _item(before, wanted)
    said = ", ".join(map(render_quoted, commands))
    empty = item.get("accept_tests")
    if isinstance(empty, YamlSequence):
        return with_flow_item(text, empty, said)
    if empty is not None:
        return with_value(text, empty, f"[{said}]")
    indent = " " * (item.start.column - 1)
    lines = "".join(f"\n{indent}  - {render_text(each)}" for each in commands)
    return _with_key(text, item, "description", "accept_tests", lines, f"[{said}]")


def with_closed_text(before: PlanText) -> str:
    """Return the text with a newline after a block of text that the file ends in; the block's value is the same."""
    text, last = before.text, last_scalar(before.root) if before.root is not None else None
    if last is None or text.endswith("\n") or text[last.start.index : last.start.index + 1] not in {"|", ">"}:
        return text
    return f"{text[: last.start.index + 1]}-{text[last.start.index + 1 :]}\n"


def with_tasks(before: PlanText, tasks: Sequence[Task]) -> str:
    """Return the text with tasks appended to its list."""
    text, listing = before.text, before.listing
    if listing is None:
        return _first_tasks(before, tasks)
    start, end = listing.start.index, listing.end.index
    in_braces = isinstance(before.root, YamlMapping) and before.root.flow
    if not listing.items and not in_braces and "#" not in text[start:end]:
        rest = line_end(text, end)
        return with_lines(text[:start].rstrip(" ") + text[end:rest], render_tasks(tasks, 2), text[rest:])
    if listing.flow:
        return with_flow_item(text, listing, ", ".join(map(render_flow, tasks)))
    added = render_tasks(tasks, listing.start.column - 1)
    if _is_last(before.root, listing):
        return with_last_lines(text, added)
    return _insert_after(text, listing, added)


def _first_tasks(before: PlanText, tasks: Sequence[Task]) -> str:
    text, added = before.text, render_tasks(tasks, 2)
    root = before.root
    if isinstance(root, YamlMapping) and root.flow:
        return with_flow_item(text, root, f"tasks: [{', '.join(map(render_flow, tasks))}]")
    if isinstance(root, YamlMapping) and (empty := root.get("tasks")) is not None and is_nothing(empty):
        place = empty.start.index
        if empty.end.index > place:  # `~` or `null`
            text = text[:place].rstrip(" ") + text[empty.end.index :]
        rest = line_end(text, place)
        return with_lines(text[:rest], added, text[rest:])
    return with_last_lines(text, f"tasks:\n{added}")


def _with_key(text: str, item: YamlMapping, after: str, name: str, block: str, flow: str = "") -> str:
    """Return the text with a new key of a task: after the key `after`, or with the value `flow` before the brace."""
    key, value = next(entry for entry in item.entries if entry[0].text == after)
    if item.flow:
        quote = text[key.start.index] if text[key.start.index] in "'\"" else ""
        return with_flow_item(text, item, f"{quote}{name}{quote}: {flow or f'{quote}{block}{quote}'}")
    space = "" if block.startswith("\n") else " "
    return _insert_after(text, value, f"{' ' * (item.start.column - 1)}{name}:{space}{block}\n")


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
