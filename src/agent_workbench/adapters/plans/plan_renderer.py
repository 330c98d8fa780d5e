"""Renderer of tasks and plans as readable YAML, and edits of a plan's text that change only the edited node."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from agent_workbench.adapters.plans.plan_parser import PlanText
from agent_workbench.core.errors import PlanError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task, TaskOrigin, TaskStatus
from agent_workbench.core.yaml_documents import (
    Node,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    after_lines,
    is_clean,
    is_nothing,
    is_text,
    last_scalar,
    line_end,
    line_start,
    with_flow_item,
    with_last_lines,
    with_lines,
    with_value,
)

# Texts that need no quotes: nothing that opens a collection, a comment, a key or an alias.
PLAIN = re.compile(r"\.?[A-Za-z](?:[\w ./()=+*,'\"@%;!?&|<>~-]|:(?=[^\s])|(?<=[^\s])#)*(?<! )")
ALWAYS = {"id", "description", "status"}

Value = str | int | float | Sequence["Value"] | Mapping[str, "Value"]

REASON = "blocked_because"
QUEUED_AS = "queued_as"


def render_plan(plan: Plan) -> str:
    """Return the plan as the text of a new file; raise `PlanError` for text that YAML cannot represent."""
    goal = f"goal: {_block_text(plan.goal, 2)}\n" if plan.goal else ""
    tasks = "tasks:\n" + render_tasks(plan.tasks, 2) if plan.tasks else "tasks: []\n"
    return f"version: 1\n{goal}{tasks}"


def render_tasks(tasks: Iterable[Task], indent: int) -> str:
    """Return the tasks as items of a block list indented by `indent` spaces, each with a final newline."""
    lines = []
    for task in tasks:
        body = _block(task_fields(task), indent + 2)
        lines.append(" " * indent + "- " + body.removeprefix(" " * (indent + 2)))
    return "".join(lines)


def render_mapping(values: Mapping[str, Value]) -> str:
    """Return a document that is a mapping; raise `PlanError` for text that YAML cannot represent."""
    return _block(values, 0)


def render_text(text: str) -> str:
    """Return one line of text as a value in a block, in quotes if needed."""
    return text if _is_plain(text) else render_quoted(text)


def render_flow(task: Task) -> str:
    """Return the task on one line in braces, as an item of a flow list."""
    return _flow(task_fields(task))


def task_fields(value: Struct) -> dict[str, Value]:
    """Return the fields that differ from their defaults, and those that are always written."""
    found: dict[str, Value] = {}
    for field in fields(value):
        said = getattr(value, field.name)
        default = field.default_factory() if field.default_factory is not NODEFAULT else field.default
        if (said != default or field.name in ALWAYS) and not isinstance(said, TaskOrigin):
            found[field.name] = _value(said)
    return found


def _value(said: object) -> Value:
    if isinstance(said, Struct):
        return task_fields(said)
    return tuple(map(_value, said)) if isinstance(said, tuple) else cast("Value", said)


def _block(values: Mapping[str, Value], indent: int) -> str:
    return "".join(f"{' ' * indent}{key}:{_block_value(value, indent)}" for key, value in values.items())


def _block_value(value: Value, indent: int) -> str:
    match value:
        case str():
            return f" {_block_text(value, indent + 2)}\n"
        case int() | float():
            return f" {value!r}\n"
        case Mapping():
            return "\n" + _block(value, indent + 2)
    if not value:
        return " []\n"
    return "\n" + "".join(f"{' ' * (indent + 2)}- {_block_item(each, indent + 4)}" for each in value)


def _block_item(value: Value, indent: int) -> str:
    if isinstance(value, Mapping):
        return _block(value, indent).removeprefix(" " * indent)
    return f"{_block_text(str(value), indent)}\n"


def _block_text(text: str, indent: int) -> str:
    text = str(text)
    if not _is_literal(text):
        return render_text(text)
    lines = text.removesuffix("\n").split("\n")
    body = "\n".join(f"{' ' * indent}{line}" if line else "" for line in lines)
    return f"{'|' if text.endswith(chr(10)) else '|-'}\n{body}"


def _is_plain(text: str) -> bool:
    return bool(PLAIN.fullmatch(text)) and is_text(text) and text.isprintable()


def _is_literal(text: str) -> bool:
    lines = text.removesuffix("\n").split("\n")
    return (
        "\n" in text
        and lines[0][:1].strip() != ""
        and lines[-1].strip() != ""
        and all(line.isprintable() for line in lines)
    )


def _flow(value: Value) -> str:
    match value:
        case str():
            return render_quoted(value)
        case int() | float():
            return repr(value)
        case Mapping():
            return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]"


def render_quoted(text: str) -> str:
    """Return a text in double quotes; raise `PlanError` for one that YAML cannot represent."""
    if not is_clean(text):
        raise PlanError(f"{text[:60]!a} contains control characters", advice="remove them")
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    known = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    if character in known:
        return known[character]
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"


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
