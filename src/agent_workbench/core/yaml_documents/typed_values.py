"""Conversion of YAML nodes to values of given types. An error names the position and what was expected."""

import math
import re
import types
import typing
import unicodedata
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import fields

from agent_workbench.core.errors import UsageError
from agent_workbench.core.ids import TaskId, task_id
from agent_workbench.core.plan import OrNumber, Unwritten
from agent_workbench.core.text.amounts import did_you_mean, quoted
from agent_workbench.core.yaml_documents.nodes import DocumentError, Node, YamlMapping, YamlScalar, YamlSequence

Value = TypeVar("Value", bound=Struct)

INTEGER = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)
NUMBER_LIMIT = 1e15
"""Upper limit, so that sums and products of dollars, seconds and tokens stay finite."""
NUMBER = re.compile(r"(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
# Numbers of YAML 1.1 and 1.2, so that every reader agrees on what is text.
NUMBER_LIKE = re.compile(
    r"[-+]?(?:\.\d[\d_]*|\d[\d_]*(?:\.[\d_]*)?)(?:[eE][-+]?\d+)?|[-+]?0[box][\da-fA-F_]+|[-+]?\.(?:inf|nan)",
    re.ASCII | re.IGNORECASE,
)
BOOLEANS = {"true": True, "false": False}
YAML_1_1_BOOLEANS = {"yes", "no", "on", "off"}
NOTHING = {"", "~", "null"}
SHAPES: Mapping[object, Callable[[str], object]] = {TaskId: task_id}


def is_nothing(node: Node) -> bool:
    """Return True if a value was left out (`key:` alone, `~`, `null`)."""
    return isinstance(node, YamlScalar) and node.plain and node.text.lower() in NOTHING


def is_text(text: str) -> bool:
    """Return True if every YAML reader takes this, without quotes, for a string."""
    low = text.lower()
    return not (low in NOTHING or low in BOOLEANS or low in YAML_1_1_BOOLEANS or NUMBER_LIKE.fullmatch(text))


def is_clean(text: str) -> bool:
    """Return True if `text` has no control characters except newline and tab, and no lone surrogates."""
    return all(each in "\n\t" or unicodedata.category(each) not in {"Cc", "Cs"} for each in text)


def read_value(node: Node, wanted: object, path: str) -> object:
    """Return the node's value as the type `wanted`; raise `DocumentError` naming `path`, the key's dotted name.

    Types: str, int, float, bool, `StrEnum`s, `TaskId`, any of them `| None`, tuples of them, `tuple[tuple[str, str],
    ...]` (written as a mapping), frozen values of all these. Numbers are finite and never negative.
    """
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is types.UnionType:
        return None if is_nothing(node) else read_value(node, arguments[0], path)
    if origin is tuple and typing.get_args(arguments[0]):
        return _pairs(node, path)
    if origin is tuple:
        return _items(node, arguments[0], path)
    if isinstance(wanted, type) and issubclass(wanted, Struct):
        return read_mapping(node, wanted, path)
    if not isinstance(node, YamlScalar):
        raise expected(node, _name(wanted), path)
    return _scalar(node, wanted, path)


def read_mapping(node: Node, wanted: type[Value], path: str) -> Value:
    """Return a mapping as a value of class `wanted`: its fields are the known keys; missing ones take defaults."""
    if not isinstance(node, YamlMapping):
        raise expected(node, "a mapping", path)
    marked = mapping_fields(wanted)
    numbers = {name for name, hint in marked.items() if hint == OrNumber}
    hints = {name: hint for name, hint in typing.get_type_hints(wanted).items() if name in marked}
    needed = required_fields(wanted)
    values: dict[str, object] = {}
    for key, value in node.entries:
        if key.text not in hints:
            raise unknown_key(key, hints, path)
        if key.text in numbers and isinstance(value, YamlScalar) and value.plain and INTEGER.fullmatch(value.text):
            values[key.text] = value.text
        elif not is_nothing(value) or key.text in needed:
            values[key.text] = read_value(value, hints[key.text], join(path, key.text))
    if missing := sorted(needed - set(values)):
        raise DocumentError(node.start, f"{prefix(path)}expected the key {missing[0]!r}, found none")
    return wanted(**values)


def mapping_fields(wanted: type[Struct]) -> dict[str, object]:
    """Return the keys of a mapping that is read as `wanted`, with their types and marks."""
    marked = typing.get_type_hints(wanted, include_extras=True)
    return {name: hint for name, hint in marked.items() if hint != Unwritten}


def required_fields(wanted: type[Struct]) -> frozenset[str]:
    """Return the keys that such a mapping must have."""
    return frozenset(each.name for each in fields(wanted) if each.required)


def unknown_key(key: YamlScalar, known: typing.Iterable[str], path: str) -> DocumentError:
    """Return the error for an unknown key, with the nearest known one."""
    names = list(known)
    where = f" in {path}" if path else ""
    return DocumentError(
        key.start,
        f"unknown key {quoted(key.text)}{where}{did_you_mean(key.text, names)}",
        f"known keys{where}: {', '.join(names)}",
    )


def expected(node: Node, what: str, path: str, advice: str = "") -> DocumentError:
    """Return the error for a value: what was expected and what was found."""
    return DocumentError(node.start, f"{prefix(path)}expected {what}, found {_found(node)}", advice)


def join(path: str, key: str) -> str:
    """Return the dotted name of a key under `path`."""
    return f"{path}.{key}" if path else key


def prefix(path: str) -> str:
    """Return the beginning of a message about the value at `path`."""
    return f"{path}: " if path else ""


def _items(node: Node, wanted: object, path: str) -> tuple[object, ...]:
    if not isinstance(node, YamlSequence):
        raise expected(node, f"a list ({_name(wanted)} each)", path)
    return tuple(read_value(item, wanted, f"{path}[{number}]") for number, item in enumerate(node.items))


def _pairs(node: Node, path: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(node, YamlMapping):
        raise expected(node, "a mapping of text to text", path)
    return tuple((_text(key, path), _text(value, join(path, key.text[:60]))) for key, value in node.entries)


def _scalar(node: YamlScalar, wanted: object, path: str) -> object:
    if wanted is bool:
        return _boolean(node, path)
    if wanted is int:
        if not (node.plain and INTEGER.fullmatch(node.text)):
            too_long = node.plain and re.fullmatch(r"[1-9][0-9]+", node.text)
            raise expected(node, "a whole number of at most 18 digits" if too_long else _name(int), path)
        return int(node.text)
    if wanted is float:
        if not (node.plain and NUMBER.fullmatch(node.text) and math.isfinite(float(node.text))):
            raise expected(node, _name(float), path)
        if float(node.text) >= NUMBER_LIMIT:
            raise expected(node, "a number below 10^15", path)
        return float(node.text)
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return _choice(node, wanted, path)
    return _shaped(node, wanted, path)


def _boolean(node: YamlScalar, path: str) -> bool:
    found = BOOLEANS.get(node.text.lower()) if node.plain else None
    if found is None:
        raise expected(node, _name(bool), path)
    return found


def _choice(node: YamlScalar, wanted: type[StrEnum], path: str) -> StrEnum:
    if node.text not in [each.value for each in wanted]:
        raise expected(node, _name(wanted), path)
    return wanted(node.text)


def _shaped(node: YamlScalar, wanted: object, path: str) -> object:
    text = _text(node, path)
    shape = SHAPES.get(wanted)
    if shape is None:
        return text
    try:
        return shape(text)
    except UsageError as error:
        raise DocumentError(node.start, f"{prefix(path)}{error}", error.advice) from error


def _text(node: Node, path: str) -> str:
    if not isinstance(node, YamlScalar):
        raise expected(node, "text", path)
    if node.plain and not is_text(node.text):
        raise expected(node, "text", path, "" if is_nothing(node) else "put it in quotes if text is meant")
    if not is_clean(node.text):
        raise DocumentError(node.start, f"{prefix(path)}expected text without control characters, found {_found(node)}")
    return node.text


def _name(wanted: object) -> str:
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        *firsts, last = [each.value for each in wanted]
        return f"{', '.join(firsts)} or {last}"
    if wanted is int:
        return "a whole number (decimal, not negative)"
    if wanted is float:
        return "a finite number (not negative)"
    if wanted is bool:
        return "true or false"
    return "a mapping" if isinstance(wanted, type) and issubclass(wanted, Struct) else "text"


def _found(node: Node) -> str:
    match node:
        case YamlMapping():
            return "a mapping"
        case YamlSequence():
            return "a list"
        case YamlScalar():
            if is_nothing(node):
                return "nothing"
            if not node.plain or is_text(node.text):
                return f"the text {quoted(node.text)}"
            return node.text[:40]
