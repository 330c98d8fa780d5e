"""Events as JSON and back, derived from their dataclasses: strict, and total over every event."""

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TypeAlias

from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Event

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

# Sums and shares of numbers have to be finite too.
_LARGEST = 1e300

_Change = Callable[[str], str]


class _Misfit(Exception):
    """A value that is not of its field's type; the path to it grows while the error climbs."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.path = ""

    def under(self, name: str) -> "_Misfit":
        """Return this error as seen from one level further out."""
        self.path = name + (self.path if self.path.startswith("[") else f".{self.path}" if self.path else "")
        return self


@dataclass(frozen=True, slots=True)
class _Codec:
    """How values of one type become JSON, come back, and have their texts changed."""

    encode: Callable[[object], JsonValue]
    decode: Callable[[JsonValue], object]
    change: Callable[[object, _Change], object]


def encode_event(event: Event) -> tuple[str, JsonObject]:
    """Return the event's kind and its body as JSON values; raise `JournalError` naming a field of the wrong type."""
    cls: type = type(event)
    kind = kind_of(cls)
    if cls not in event_classes().values():
        raise JournalError(f"{cls.__name__} is not an event")
    try:
        return kind, typing.cast(JsonObject, _codec(cls).encode(event))
    except _Misfit as misfit:
        raise JournalError(f"event {kind}: {misfit.path}: {misfit}") from None


def decode_event(kind: str, body: JsonValue) -> Event:
    """Return the event with this kind and body.

    A missing field takes its default. Raises `JournalError` naming the kind that is unknown, or the field that is
    unknown, missing without a default, or of the wrong type.
    """
    cls: type | None = event_classes().get(kind)
    if cls is None:
        raise JournalError(
            f"unknown kind of event {kind!r}", advice="the journal may come from a newer version of Agent Workbench"
        )
    try:
        return typing.cast(Event, _codec(cls).decode(body))
    except _Misfit as misfit:
        raise JournalError(f"event {kind}: {misfit.path or 'body'}: {misfit}") from None


def change_texts(event: Event, change: Callable[[str], str]) -> Event:
    """Return the event with `change` applied to each of its texts; identifiers and enumerations stay as they are."""
    cls: type = type(event)
    return typing.cast(Event, _codec(cls).change(event, change))


def kind_of(cls: type) -> str:
    """Return the kind of an event class: its name in snake case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


@cache
def event_classes() -> Mapping[str, type[Event]]:
    """Return every event class by its kind."""
    return types.MappingProxyType({kind_of(cls): cls for cls in typing.get_args(Event)})


@cache
def _codec(hint: object) -> _Codec:
    """Return the codec for a type hint; `TypeError` for types that no event may have."""
    if isinstance(hint, typing.NewType):
        inner = _codec(hint.__supertype__)
        return _Codec(inner.encode, inner.decode, _unchanged)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _enum_codec(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass_codec(hint)
    if typing.get_origin(hint) is tuple:
        return _tuple_codec(typing.get_args(hint))
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _optional_codec(typing.get_args(hint))
    match hint:
        case _ if hint is str:
            return _Codec(_text, _text, lambda value, change: change(typing.cast(str, value)))
        case _ if hint is bool:
            return _Codec(_flag, _flag, _unchanged)
        case _ if hint is int:
            return _Codec(_integer, _integer, _unchanged)
        case _ if hint is float:
            return _Codec(_number, _number, _unchanged)
    raise TypeError(f"no codec for {hint!r}: an event holds values of core only")


def _unchanged(value: object, _: _Change) -> object:
    return value


def _refuse(value: object, expected: str) -> _Misfit:
    match value:
        case str():
            shown = repr(value if len(value) <= 60 else value[:57] + "...")
        case None | bool() | float():
            shown = repr(value)
        case int() if value.bit_length() <= 64:
            shown = repr(value)
        case _:
            shown = type(value).__name__
    return _Misfit(f"{shown} where {expected} belongs")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _refuse(value, "text")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _refuse(value, "true or false")
    return value


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise _refuse(value, "a whole number of at most 64 bits")
    return value


def _number(value: object) -> float:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 64:
        return float(value)
    if not isinstance(value, float) or not abs(value) <= _LARGEST:
        raise _refuse(value, "a finite number")
    return value


def _enum_codec(cls: type[StrEnum]) -> _Codec:
    members = {member.value: member for member in cls}
    expected = "one of " + ", ".join(members)

    def encode(value: object) -> JsonValue:
        if not isinstance(value, cls):
            raise _refuse(value, expected)
        return value.value

    def decode(value: JsonValue) -> object:
        if not isinstance(value, str) or value not in members:
            raise _refuse(value, expected)
        return members[value]

    return _Codec(encode, decode, _unchanged)


def _optional_codec(choices: tuple[object, ...]) -> _Codec:
    rest = [choice for choice in choices if choice is not types.NoneType]
    if len(rest) != 1 or len(choices) != 2:
        raise TypeError(f"no codec for a choice of {choices!r}: only one type or None")
    inner = _codec(rest[0])
    return _Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda value: None if value is None else inner.decode(value),
        lambda value, change: None if value is None else inner.change(value, change),
    )


def _tuple_codec(items: tuple[object, ...]) -> _Codec:
    """Return the codec of `tuple[X, ...]`, or of a tuple with a type for each place."""
    repeated = _codec(items[0]) if items[1:] == (Ellipsis,) else None
    places = () if repeated else tuple(_codec(item) for item in items)

    def codecs(value: tuple[object, ...] | list[JsonValue]) -> tuple[_Codec, ...]:
        if repeated:
            return (repeated,) * len(value)
        if len(value) != len(places):
            raise _Misfit(f"{len(value)} values where {len(places)} belong")
        return places

    def encode(value: object) -> JsonValue:
        if not isinstance(value, tuple):
            raise _refuse(value, "a tuple")
        return [_inside(f"[{i}]", codec.encode, value[i]) for i, codec in enumerate(codecs(value))]

    def decode(value: JsonValue) -> object:
        if not isinstance(value, list):
            raise _refuse(value, "a list")
        return tuple(_inside(f"[{i}]", codec.decode, value[i]) for i, codec in enumerate(codecs(value)))

    def change(value: object, by: _Change) -> object:
        values = typing.cast(tuple[object, ...], value)
        return tuple(codec.change(values[i], by) for i, codec in enumerate(codecs(values)))

    return _Codec(encode, decode, change)


def _dataclass_codec(cls: type) -> _Codec:
    hints = typing.get_type_hints(cls)
    fields = {field.name: _codec(hints[field.name]) for field in dataclasses.fields(cls)}
    required = {field.name for field in dataclasses.fields(cls) if _has_no_default(field)}

    def encode(value: object) -> JsonValue:
        if type(value) is not cls:
            raise _refuse(value, cls.__name__)
        return {name: _inside(name, codec.encode, getattr(value, name)) for name, codec in fields.items()}

    def decode(value: JsonValue) -> object:
        if not isinstance(value, dict):
            raise _refuse(value, cls.__name__)
        if unknown := value.keys() - fields.keys():
            raise _Misfit(f"{cls.__name__} has no such field").under(min(unknown))
        if missing := required - value.keys():
            raise _Misfit(f"{cls.__name__} needs this field").under(min(missing))
        return cls(**{name: _inside(name, fields[name].decode, each) for name, each in value.items()})

    def change(value: object, by: _Change) -> object:
        return cls(**{name: codec.change(getattr(value, name), by) for name, codec in fields.items()})

    return _Codec(encode, decode, change)


def _has_no_default(field: "dataclasses.Field[object]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


_Given = typing.TypeVar("_Given")
_Made = typing.TypeVar("_Made")


def _inside(name: str, act: Callable[[_Given], _Made], value: _Given) -> _Made:
    try:
        return act(value)
    except _Misfit as misfit:
        raise misfit.under(name) from None
