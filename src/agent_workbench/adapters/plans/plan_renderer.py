"""Renderer of tasks and plans as readable YAML that parses to the same values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from agent_workbench.core.errors import PlanError
from agent_workbench.core.plan import Plan, Task, TaskOrigin
from agent_workbench.core.yaml_documents import is_clean, is_text

# Texts that need no quotes: nothing that opens a collection, a comment, a key or an alias.
PLAIN = re.compile(r"\.?[A-Za-z](?:[\w ./()=+*,'\"@%;!?&|<>~-]|:(?=[^\s])|(?<=[^\s])#)*(?<! )")
ALWAYS = {"id", "description", "status"}

Value = str | int | float | Sequence["Value"] | Mapping[str, "Value"]


def render_plan(plan: Plan) -> str:
    """Return the plan as the text of a new file; raise `PlanError` for text that YAML cannot represent."""
    goal = f"goal: {_block_text(plan.goal, 2)}\n" if plan.goal else ""
    tasks = "tasks:\n" + render_tasks(plan.tasks, 2) if plan.tasks else "tasks: []\n"
    return f"version: 1\n{goal}{tasks}"


def render_tasks(tasks: Iterable[Task], indent: int) -> str:
    """Return the tasks as items of a block list indented by `indent` spaces, each with a final newline."""
    lines = []
    for task in tasks:
        body = _block(_fields(task), indent + 2)
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
    return _flow(_fields(task))


def task_fields(task: Task) -> dict[str, Value]:
    """Return the fields of a task that differ from their defaults, and those that are always written."""
    return _fields(task)


def _fields(value: Struct) -> dict[str, Value]:
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
        return _fields(said)
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
