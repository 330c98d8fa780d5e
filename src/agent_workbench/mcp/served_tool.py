"""Tools that the server offers, and the check of the arguments that a client sends."""

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from agent_workbench.core.text.amounts import did_you_mean, quoted
from agent_workbench.core.tools.schema import read_schema
from agent_workbench.core.tools.shapes import (
    AnyShape,
    ArrayShape,
    BooleanShape,
    IntegerShape,
    ObjectShape,
    Shape,
    StringShape,
    UnionShape,
)
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, read_bounded_json

MAX_ARGUMENT_CHARS = 400_000
"""Characters of all arguments of a call as JSON."""
NAME_CHARS = 1_000
TEXT_CHARS = 100_000
MAX_FILES = 50

JsonObject: TypeAlias = "dict[str, JsonValue]"


class BadArguments(ValueError):
    """The reason why the arguments of a call are refused; it holds the argument's name."""


class FailedCall(Exception):
    """The reason why a tool that was called failed, with the outcome that it has even so; empty if it has none."""

    def __init__(self, why: str, outcome: JsonObject) -> None:
        super().__init__(why)
        self.outcome = outcome


class Arguments(Struct, frozen=True):
    """Checked arguments of a call."""

    values: Mapping[str, JsonValue]

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self.values.get(name, default)
        return value if isinstance(value, str) else default

    def number(self, name: str, default: int) -> int:
        """Return a whole number."""
        value = self.values.get(name, default)
        return value if isinstance(value, int) else default

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self.values.get(name)
        return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


Call: TypeAlias = Callable[[Arguments], Coroutine[Any, Any, JsonObject]]


class ServedTool(Struct, frozen=True):
    """A tool of the server; `schema` is the JSON Schema of its arguments as text, `call` its work.

    `reads`: it changes nothing. The hint tells a client what to expect; whoever calls decides nothing by it here.
    """

    name: str
    summary: str
    schema: str
    call: Call
    reads: bool = True


def text_field(note: str, most: int = TEXT_CHARS) -> JsonObject:
    """Return the schema of a text."""
    return {"type": "string", "maxLength": most, "description": note}


def name_field(note: str) -> JsonObject:
    """Return the schema of a short text on one line."""
    return text_field(note, NAME_CHARS)


def number_field(note: str, most: int) -> JsonObject:
    """Return the schema of a whole number from 0 to `most`."""
    return {"type": "integer", "minimum": 0, "maximum": most, "description": note}


def files_field(note: str) -> JsonObject:
    """Return the schema of a list of paths with at least one."""
    items: JsonObject = {"type": "string", "maxLength": NAME_CHARS}
    return {"type": "array", "items": items, "minItems": 1, "maxItems": MAX_FILES, "description": note}


def schema_of(required: Mapping[str, JsonObject], optional: Mapping[str, JsonObject]) -> str:
    """Return the schema of a tool's arguments as JSON."""
    properties: JsonObject = {**required, **optional}
    names: list[JsonValue] = list(required)
    return json.dumps(
        {"type": "object", "properties": properties, "required": names, "additionalProperties": False},
        separators=(",", ":"),
    )


def check_arguments(tool: ServedTool, sent: object) -> Arguments:
    """Return the arguments that a client sent; raise `BadArguments`."""
    try:
        written = json.dumps(sent if sent is not None else {})
    except (TypeError, ValueError, RecursionError):
        raise BadArguments("the arguments are not JSON") from None
    if len(written) > MAX_ARGUMENT_CHARS:
        raise BadArguments(f"the arguments have more than {MAX_ARGUMENT_CHARS:,} characters")
    try:
        values = read_bounded_json(written)
    except JsonError as error:
        raise BadArguments(f"the arguments cannot be read: {error}") from None
    shape = read_schema(tool.schema).shape
    if not isinstance(values, dict) or isinstance(shape, UnionShape):
        raise BadArguments("the arguments must be one JSON object")
    _check_object("", values, shape)
    return Arguments(values)


def _check_object(place: str, values: Mapping[str, JsonValue], shape: ObjectShape) -> None:
    known = {each.name: each for each in shape.properties}
    missing = [each.name for each in known.values() if each.required and values.get(each.name) in (None, "")]
    if missing:
        raise BadArguments(f"argument {_at(place, missing[0])} is missing")
    for name, value in values.items():
        if name in known:
            if value is not None:  # an optional argument that a client leaves open
                _check(_at(place, name), value, known[name].shape)
        elif shape.others is None:
            raise BadArguments(f"unknown argument {quoted(_at(place, name))}{did_you_mean(name, known)}")


def _check(name: str, value: JsonValue, shape: Shape) -> None:
    match shape:
        case StringShape():
            if not isinstance(value, str):
                raise BadArguments(f"argument {name} must be a text")
            if len(value) > shape.max_length:
                raise BadArguments(f"argument {name} has more than {shape.max_length:,} characters")
        case IntegerShape():
            if not isinstance(value, int) or isinstance(value, bool) or not shape.minimum <= value <= shape.maximum:
                raise BadArguments(f"argument {name} must be a whole number from {shape.minimum} to {shape.maximum}")
        case BooleanShape():
            if not isinstance(value, bool):
                raise BadArguments(f"argument {name} must be true or false")
        case ArrayShape():
            if not isinstance(value, list) or not shape.min_items <= len(value) <= shape.max_items:
                raise BadArguments(f"argument {name} must be a list of {shape.min_items} to {shape.max_items} values")
            for each in value:
                _check(name, each, shape.items or AnyShape())
        case ObjectShape():
            if not isinstance(value, dict):
                raise BadArguments(f"argument {name} must be an object")
            _check_object(name, value, shape)
        case _:
            return


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def by_name(tools: Sequence[ServedTool]) -> dict[str, ServedTool]:
    """Return the tools by their names, in their order."""
    return {tool.name: tool for tool in tools}
