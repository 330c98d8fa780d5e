"""Conversion of events to JSON values and back: strict, and total over every event."""

import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

import msgspec

from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Event
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.strict_json import JsonValue

JsonObject: TypeAlias = dict[str, JsonValue]

MAX_DEPTH = 64
"""Limit of nesting for readers of bodies that are not decoded yet; no event reaches it."""
MAX_REASON_CHARS = 300
# Sums and shares of numbers must stay finite too.
_LARGEST_NUMBER = 1e300
# Sentences of msgspec, and the types that it names.
_WRONG_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_WRONG_FIELD = re.compile(r"Object (?:(contains unknown)|missing required) field `(.*)`", re.DOTALL)
_WRONG_CHOICE = re.compile(r"Invalid (?:enum )?value (.*)", re.DOTALL)
_TYPES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}

RECORDED_FIELDS = (
    *("id", "kind", "tool", "text", "step", "diff", "commands", "paths", "special", "preimages", "purpose", "edited"),
    *("repaired", "fallback", "outlook", "brings", "hunks", "source", "spec", "hints", "method", "methods", "reviewed"),
    *("plan", "similar", "origins", "playbook", "left_out"),
)
"""Fields of a proposal in a journal, in their order: all kinds are recorded with the fields of all."""
REQUIRED_FIELDS = ("id", "tool", "text", "step")
"""Fields that a proposal in a journal always has, besides its kind."""

_WITH_PROPOSAL = frozenset({"action_proposed", "proposal_replaced"})

_Change = Callable[[str], str]
_Changer = Callable[[typing.Any, _Change], typing.Any]


def encode_event(event: Event) -> tuple[str, JsonObject]:
    """Return the event's kind and its body as JSON values.

    Raises `JournalError` for a value that could not be read back.
    """
    cls: type = type(event)
    if cls not in event_classes().values():
        raise JournalError(f"{cls.__name__} is not an event")
    kind = kind_of(cls)
    # Reading the body back refuses what does not fit, and makes 2 seconds the 2.0 of its field's type.
    read_back = decode_event(kind, msgspec.to_builtins(event, builtin_types=(bytes,)))
    body = typing.cast(JsonObject, _with_lists(msgspec.to_builtins(read_back)))
    if kind in _WITH_PROPOSAL:
        own = typing.cast(JsonObject, body["proposal"])
        body["proposal"] = {name: own.get(name, default) for name, default in _flat_fields().items()}
    return kind, body


def _with_lists(value: object) -> object:
    """Return the value with a list in place of each tuple, which msgspec takes for a builtin type."""
    if isinstance(value, dict):
        return {key: _with_lists(each) for key, each in value.items()}
    return [_with_lists(each) for each in value] if isinstance(value, list | tuple) else value


def decode_event(kind: str, body: JsonValue) -> Event:
    """Return the event with this kind and body.

    A missing field takes its default. Raises `JournalError` that names an unknown kind, or the path of a field that
    is unknown, missing without a default, or of the wrong type.
    """
    cls: type | None = event_classes().get(kind)
    if cls is None:
        raise JournalError(
            f"unknown kind of event {quoted(kind)}",
            advice="the journal may come from a newer version of Agent Workbench",
        )
    try:
        event: Event = msgspec.convert(_with_own_fields(body) if kind in _WITH_PROPOSAL else body, cls)
        # A body of the right type is no deeper than its type, however deep a hostile one is.
        _check_numbers(body, "$")
    except msgspec.ValidationError as misfit:
        raise JournalError(f"event {kind}: {sanitize_line(_misfit(str(misfit)), MAX_REASON_CHARS)}") from None
    except UnicodeEncodeError:  # msgspec's answer to a name or a choice that it cannot look up
        raise JournalError(f"event {kind}: a name or a choice holds half a character (a lone surrogate)") from None
    return event


@cache
def _flat_fields() -> Mapping[str, JsonValue]:
    """Return the fields of a recorded proposal in their order, each with its default: it has those of all kinds."""
    found = {each.name: each.default for cls in KINDS.values() for each in msgspec.structs.fields(cls)}
    return {name: typing.cast(JsonValue, _with_lists(found.get(name))) for name in RECORDED_FIELDS}


def _with_own_fields(body: JsonValue) -> JsonValue:
    """Return a body whose proposal lacks the fields of other kinds, which have their defaults."""
    proposal = body.get("proposal") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(proposal, dict):
        return body
    for name in REQUIRED_FIELDS:
        if name not in proposal:
            raise msgspec.ValidationError(f"Object missing required field `{name}` - at `$.proposal`")
    flat, kind = _flat_fields(), proposal.get("kind")
    own = KINDS[Permission(kind)].__struct_fields__ if isinstance(kind, str) and kind in KINDS else flat
    kept = {name: value for name, value in proposal.items() if name in own or name not in flat or value != flat[name]}
    return {**body, "proposal": kept}


def _misfit(said: str) -> str:
    """Return msgspec's account of a body that does not fit in the words of this program, with the field first."""
    problem, _, path = said.rpartition(" - at `$") if " - at `$" in said else (said, "", "")
    place = path.removesuffix("`").removeprefix(".")
    if found := _WRONG_TYPE.fullmatch(problem):
        wanted, given = (" or ".join(_TYPES.get(each, each) for each in side.split(" | ")) for side in found.groups())
        problem = f"expected {wanted}, found {given}"
    elif found := _WRONG_FIELD.fullmatch(problem):
        problem = f"{'unknown field' if found[1] else 'missing field'} {found[2]}"
    elif found := _WRONG_CHOICE.fullmatch(problem):
        problem = f"{found[1]} is not a known value"
    return f"{place}: {problem}" if place else problem


def change_texts(event: Event, change: Callable[[str], str]) -> Event:
    """Return the event with `change` applied to each of its texts; identifiers and enumerations stay as they are."""
    changer = _changer(type(event))
    return typing.cast(Event, changer(event, change)) if changer else event


def kind_of(cls: type) -> str:
    """Return the kind of an event class: its name in snake case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


@cache
def event_classes() -> Mapping[str, type[Event]]:
    """Return every event class by its kind."""
    return types.MappingProxyType({kind_of(cls): cls for cls in typing.get_args(Event)})


def _check_numbers(value: object, path: str) -> None:
    """Refuse numbers that JSON or arithmetic would not carry: not finite, or of more than 64 bits."""
    match value:
        case dict():
            for name, each in value.items():
                _check_numbers(each, f"{path}.{name}")
        case list() | tuple():
            for at, each in enumerate(value):
                _check_numbers(each, f"{path}[{at}]")
        case int() if not -(2**63) <= value < 2**63:
            raise msgspec.ValidationError(f"expected a number of at most 64 bits - at `{path}`")
        case float() if not abs(value) <= _LARGEST_NUMBER:
            raise msgspec.ValidationError(f"expected a finite number, found {value} - at `{path}`")


@cache
def _changer(hint: object) -> _Changer | None:
    """Return the function that changes all texts in a value of this type, None where the type holds none."""
    if hint is str:
        return lambda value, change: change(value)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct_changer(hint)
    items = [each for each in typing.get_args(hint) if each is not types.NoneType]
    if typing.get_origin(hint) is tuple:
        return _tuple_changer(items)
    changers = [changer for each in items if (changer := _changer(each)) is not None]
    return _value_changer if changers else None


def _value_changer(value: object, change: _Change) -> typing.Any:
    """Change the texts of a value of a union: its own type tells which they are."""
    cls: type = type(value)
    changer = _changer(cls)
    return changer(value, change) if changer is not None else value


def _struct_changer(cls: type[msgspec.Struct]) -> _Changer | None:
    hints = typing.get_type_hints(cls)
    found = {name: _changer(hints[name]) for name in cls.__struct_fields__}
    changers = {name: each for name, each in found.items() if each is not None}
    if not changers:
        return None

    def changed(value: msgspec.Struct, change: _Change) -> msgspec.Struct:
        before = {name: getattr(value, name) for name in changers}
        after = {name: each(before[name], change) for name, each in changers.items()}
        # The same value stays the same object, with what it has computed from its texts.
        return value if after == before else msgspec.structs.replace(value, **after)

    return changed


def _tuple_changer(items: list[object]) -> _Changer | None:
    if items[1:] == [Ellipsis]:
        inner = _changer(items[0])
        return None if inner is None else lambda value, change: tuple(inner(each, change) for each in value)
    places = [_changer(item) for item in items]
    if not any(places):
        return None
    return lambda value, change: tuple(
        place(each, change) if place else each for place, each in zip(places, value, strict=True)
    )
