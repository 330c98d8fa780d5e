"""Arguments of a tool call: one line of JSON, read against the tool's schema."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.patch.paths import similar_paths
from agent_workbench.core.tools.shapes import (
    AnyShape,
    ArrayShape,
    BooleanShape,
    ConstShape,
    IntegerShape,
    NullShape,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
    UnionShape,
)
from agent_workbench.core.tools.spec import ToolSpec, read_spec_schema
from agent_workbench.core.tools.strict_json import (
    JsonError,
    JsonFormError,
    JsonNameError,
    JsonValue,
    read_bounded_json,
    read_json,
)

MAX_JSON_CHARS = 20_000
MAX_INTEGER = 1_000_000
EXAMPLE_DEPTH = 3


class ArgumentKind(StrEnum):
    """The type of a built-in tool's argument."""

    STRING = "string"
    INTEGER = "integer"


class Argument(Struct, frozen=True):
    """One argument of a built-in tool; `max_length` bounds strings in characters."""

    name: str
    kind: ArgumentKind
    note: str
    required: bool = True
    max_length: int = 200


class Arguments(Struct, frozen=True):
    """Checked values of a call."""

    values: Mapping[str, JsonValue]

    def text(self, name: str, default: str = "") -> str:
        """Return a string argument."""
        value = self.values.get(name, default)
        return value if isinstance(value, str) else default

    def number(self, name: str, default: int) -> int:
        """Return an integer argument."""
        value = self.values.get(name, default)
        return value if isinstance(value, int) else default


Choices = Mapping[str, tuple[str, ...]]
"""The values that some arguments may have now, by the arguments' names; any other argument may be anything."""


class ArgumentFault(ValueError):
    """The reason why arguments are refused, in words for the model."""


def schema_of(arguments: Sequence[Argument]) -> str:
    """Return the JSON Schema of a built-in tool's arguments."""
    described = {
        each.name: {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER, "description": each.note}
        if each.kind is ArgumentKind.INTEGER
        else {"type": "string", "maxLength": each.max_length, "description": each.note}
        for each in arguments
    }
    required = [each.name for each in arguments if each.required]
    schema = {"type": "object", "properties": described, "required": required, "additionalProperties": False}
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def properties_of(spec: ToolSpec) -> tuple[Property, ...]:
    """Return the named arguments of a tool, in the order of its schema."""
    shape = None if spec.raw else read_spec_schema(spec).shape
    return shape.properties if isinstance(shape, ObjectShape) else ()


def read_arguments(line: str, spec: ToolSpec) -> Arguments:
    """Return the arguments in `line`; raise `ArgumentFault` with what does not fit.

    Of a tool that is not built in only the form is read here: its schema may say more than a shape can hold, so a
    `SchemaValidator` checks the values.
    """
    if len(line) > MAX_JSON_CHARS:
        raise ArgumentFault(f"the arguments are longer than {MAX_JSON_CHARS} characters")
    try:
        value = read_json(line) if spec.builtin else read_bounded_json(line)
    except JsonFormError as error:
        raise ArgumentFault(f"the arguments are {error}") from None
    except JsonNameError as error:
        raise ArgumentFault(f"argument {error}") from None
    except JsonError as error:
        raise ArgumentFault(str(error)) from None
    if not isinstance(value, dict):
        raise ArgumentFault("the arguments must be one JSON object, such as " + example(spec))
    if not spec.builtin:
        return Arguments(value)
    known = {each.name: each for each in properties_of(spec)}
    if unknown := [name for name in value if name not in known]:
        raise ArgumentFault(f"unknown argument {unknown[0]!r}; known are: {', '.join(known) or 'none'}")
    if missing := [each.name for each in known.values() if each.required and each.name not in value]:
        raise ArgumentFault(f"argument {missing[0]!r} is missing; expected {example(spec)}")
    return Arguments({name: _checked(known[name], each) for name, each in value.items()})


def check_choices(arguments: Arguments, choices: Choices) -> None:
    """Raise `ArgumentFault` for a value that is none of its choices, naming those that are like it."""
    for name, values in choices.items():
        value = arguments.values.get(name)
        if isinstance(value, str) and value not in values:
            near = ", ".join(similar_paths(value, values))
            others = f"near it are: {near}" if near else "nothing there is like it"
            raise ArgumentFault(f"argument {name!r} cannot be {value!r}; {others}")


def example(spec: ToolSpec) -> str:
    """Return a JSON object on one line that shows which arguments a tool takes."""
    shape = read_spec_schema(spec).shape
    return json.dumps(_example(shape, EXAMPLE_DEPTH), ensure_ascii=False)


def _example(shape: Shape, depth: int) -> JsonValue:
    match shape:
        case ObjectShape(properties=properties):
            return {each.name: _example(each.shape, depth - 1) for each in properties} if depth else {}
        case ArrayShape(items=items):
            return [_example(items, depth - 1)] if items is not None and depth else []
        case UnionShape(choices=choices):
            return _example(choices[0], depth)
        case ConstShape(values=values):
            value: JsonValue = json.loads(values[0])
            return value
        case StringShape():
            return "…"
        case IntegerShape(minimum=least, maximum=most):
            return min(max(1, least), most)
        case NumberShape(whole=whole, fractions=fractions, negative_fractions=negative):
            if fractions:
                return min(max(1, fractions[0]), fractions[1]) + 0.5
            return -0.5 - negative[0] if negative else whole[0] if whole else 0
        case BooleanShape():
            return True
        case NullShape():
            return None
        case AnyShape():
            return "…"


def _checked(argument: Property, value: JsonValue) -> str | int:
    if isinstance(argument.shape, IntegerShape):
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_INTEGER:
            raise ArgumentFault(f"argument {argument.name!r} must be a whole number from 0 to {MAX_INTEGER}")
        return value
    if not isinstance(value, str):
        raise ArgumentFault(f"argument {argument.name!r} must be a string")
    most = argument.shape.max_length if isinstance(argument.shape, StringShape) else MAX_JSON_CHARS
    if len(value) > most:
        raise ArgumentFault(f"argument {argument.name!r} is longer than {most} characters")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise ArgumentFault(f"argument {argument.name!r} holds half a character (a lone surrogate)")
    return value
