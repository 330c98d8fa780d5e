"""Tool arguments: one line of JSON, read strictly against the tool's own schema."""

import json
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.patch import similar_paths

MAX_JSON_CHARS = 20_000
MAX_INTEGER = 1_000_000


class ArgumentKind(StrEnum):
    """What an argument's value is."""

    STRING = "string"
    INTEGER = "integer"


class Argument(Struct, frozen=True):
    """One argument of a tool; `max_length` bounds strings in characters."""

    name: str
    kind: ArgumentKind
    note: str
    required: bool = True
    max_length: int = 200


class Arguments(Struct, frozen=True):
    """Checked values of a call."""

    values: Mapping[str, str | int]

    def text(self, name: str, default: str = "") -> str:
        """Return a string argument."""
        value = self.values.get(name, default)
        return value if isinstance(value, str) else default

    def number(self, name: str, default: int) -> int:
        """Return an integer argument."""
        value = self.values.get(name, default)
        return value if isinstance(value, int) else default


Choices = Mapping[str, tuple[str, ...]]
"""The values that there are for some arguments, by the arguments' names; any other argument may be anything."""


class ArgumentFault(ValueError):
    """Why arguments were refused, in words for the model."""


def read_arguments(line: str, schema: tuple[Argument, ...]) -> Arguments:
    """Return the arguments in `line`; raise `ArgumentFault` saying exactly what does not fit the schema."""
    if len(line) > MAX_JSON_CHARS:
        raise ArgumentFault(f"the arguments are longer than {MAX_JSON_CHARS} characters")
    value = _load(line)
    if not isinstance(value, dict):
        raise ArgumentFault("the arguments must be one JSON object, such as " + example(schema))
    known = {argument.name: argument for argument in schema}
    if unknown := [name for name in value if name not in known]:
        raise ArgumentFault(f"unknown argument {unknown[0]!r}; known are: {', '.join(known) or 'none'}")
    if missing := [each.name for each in schema if each.required and each.name not in value]:
        raise ArgumentFault(f"argument {missing[0]!r} is missing; expected {example(schema)}")
    return Arguments({name: _checked(known[name], each) for name, each in value.items()})


def check_choices(arguments: Arguments, choices: Choices) -> None:
    """Raise `ArgumentFault` for a value that is none of its choices, naming those that are like it."""
    for name, values in choices.items():
        value = arguments.values.get(name)
        if isinstance(value, str) and value not in values:
            near = ", ".join(similar_paths(value, values))
            others = f"near it are: {near}" if near else "nothing there is like it"
            raise ArgumentFault(f"argument {name!r} cannot be {value!r}; {others}")


def example(schema: tuple[Argument, ...]) -> str:
    """Return a one-line JSON object that shows the schema."""
    shown = {each.name: 1 if each.kind is ArgumentKind.INTEGER else "…" for each in schema}
    return json.dumps(shown, ensure_ascii=False)


def _load(line: str) -> object:
    try:
        return json.loads(line, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ArgumentFault(f"the arguments are not one line of JSON: {error.msg} at character {error.pos}") from None
    except ArgumentFault:
        raise
    except ValueError:  # Python reads no number of more than 4300 digits
        raise ArgumentFault("a number is too long") from None
    except RecursionError:
        raise ArgumentFault("the arguments are nested too deeply") from None


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ArgumentFault(f"argument {repeated[0]!r} stands more than once")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise ArgumentFault(f"{name} is not a JSON value")


def _checked(argument: Argument, value: object) -> str | int:
    if argument.kind is ArgumentKind.INTEGER:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_INTEGER:
            raise ArgumentFault(f"argument {argument.name!r} must be a whole number from 0 to {MAX_INTEGER}")
        return value
    if not isinstance(value, str):
        raise ArgumentFault(f"argument {argument.name!r} must be a string")
    if len(value) > argument.max_length:
        raise ArgumentFault(f"argument {argument.name!r} is longer than {argument.max_length} characters")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise ArgumentFault(f"argument {argument.name!r} holds half a character (a lone surrogate)")
    return value
