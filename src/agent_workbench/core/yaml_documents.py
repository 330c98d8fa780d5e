"""Nodes of a YAML document that know their line, and typed values that are read from them."""

import math
import re
import types
import typing
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import fields

from agent_workbench.core.errors import UsageError
from agent_workbench.core.ids import TaskId, task_id
from agent_workbench.core.plan import OrNumber, Unwritten
from agent_workbench.core.text.amounts import did_you_mean, quoted

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
_DOCUMENT_END = re.compile(r"^\.\.\.(?=\s|$)", re.MULTILINE)

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


class Mark(Struct, frozen=True):
    """A position in a text: `index` in characters from 0; `line` and `column` from 1."""

    index: int
    line: int
    column: int


class YamlScalar(Struct, frozen=True):
    """A scalar as it was written. `plain`: without quotes, so that it may be a number."""

    text: str
    plain: bool
    start: Mark
    end: Mark


class YamlSequence(Struct, frozen=True):
    """A sequence; `flow`: written in brackets."""

    items: tuple["Node", ...]
    flow: bool
    start: Mark
    end: Mark


class YamlMapping(Struct, frozen=True):
    """A mapping; `flow`: written in braces."""

    entries: tuple[tuple[YamlScalar, "Node"], ...]
    flow: bool
    start: Mark
    end: Mark

    def get(self, key: str) -> "Node | None":
        """Return the value of `key`, None if there is none."""
        return next((value for name, value in self.entries if name.text == key), None)


Node = YamlScalar | YamlSequence | YamlMapping


class CollectionStart(Struct, frozen=True):
    """Parser event: a sequence or mapping begins."""

    is_mapping: bool
    flow: bool
    start: Mark


class CollectionEnd(Struct, frozen=True):
    """Parser event: the innermost sequence or mapping ends."""

    end: Mark


ParserEvent = YamlScalar | CollectionStart | CollectionEnd


class DocumentError(Exception):
    """A document is not as it should be. The caller, which knows the file's name, raises a `WorkbenchError`."""

    def __init__(self, mark: Mark, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.mark = mark
        self.what = what
        self.advice = advice

    def in_file(self, name: str) -> str:
        """Return the message for the user: file, line, column, and what is wrong."""
        return f"{name}:{self.mark.line}:{self.mark.column}: {self.what}"


def mark_at(text: str, index: int) -> Mark:
    """Return the position of the character at `index`."""
    return Mark(index, text.count("\n", 0, index) + 1, index - (text.rfind("\n", 0, index) + 1) + 1)


def decode_document(data: bytes) -> str:
    """Return the text of a file's bytes without a byte order mark; raise `DocumentError`."""
    if len(data) > MAX_BYTES:
        raise DocumentError(Mark(0, 1, 1), f"expected at most {MAX_BYTES} bytes, found more")
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise DocumentError(
            mark_at(before, len(before)),
            f"expected UTF-8, found byte 0x{data[error.start]:02x}",
            "save the file as UTF-8",
        ) from error


def compose(events: Iterable[ParserEvent]) -> Node | None:
    """Return the root node of a stream of parser events, None if it is empty; raise `DocumentError`.

    Refused: duplicate keys, keys that are no scalars, nesting deeper than `MAX_DEPTH`.
    """
    stream = iter(events)
    if (first := next(stream, None)) is None:
        return None
    root = _node(first, stream, 1)
    if (more := next(stream, None)) is not None:
        place = more.end if isinstance(more, CollectionEnd) else more.start
        raise DocumentError(place, "expected the end of the document, found more")
    return root


def _node(event: ParserEvent, stream: Iterator[ParserEvent], depth: int) -> Node:
    match event:
        case YamlScalar():
            return event
        case CollectionEnd():
            raise DocumentError(event.end, "expected a value, found the end of a list or mapping")
        case CollectionStart():
            if depth > MAX_DEPTH:
                raise DocumentError(event.start, f"expected at most {MAX_DEPTH} levels of nesting, found more")
            return _mapping(event, stream, depth) if event.is_mapping else _sequence(event, stream, depth)


def _sequence(opening: CollectionStart, stream: Iterator[ParserEvent], depth: int) -> YamlSequence:
    items = []
    while not isinstance(event := next(stream), CollectionEnd):
        items.append(_node(event, stream, depth + 1))
    return YamlSequence(tuple(items), opening.flow, opening.start, event.end)


def _mapping(opening: CollectionStart, stream: Iterator[ParserEvent], depth: int) -> YamlMapping:
    entries: dict[str, tuple[YamlScalar, Node]] = {}
    while not isinstance(event := next(stream), CollectionEnd):
        if not isinstance(event, YamlScalar):
            raise DocumentError(event.start, "expected a key, found a list or mapping in its place")
        if event.text in entries:
            first = entries[event.text][0].start.line
            raise DocumentError(event.start, f"duplicate key {quoted(event.text)}, first on line {first}")
        entries[event.text] = (event, _node(next(stream), stream, depth + 1))
    return YamlMapping(tuple(entries.values()), opening.flow, opening.start, event.end)


def line_start(text: str, index: int) -> int:
    """Return the index where the line that contains `index` begins."""
    return text.rfind("\n", 0, index) + 1


def line_end(text: str, index: int) -> int:
    """Return the index just after the line that contains `index`."""
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1


def after_lines(text: str, node: Node) -> int:
    """Return the index just after the node's last line."""
    end = last_scalar(node).end.index
    # A block scalar (`|`) ends at the beginning of the next line.
    return end if end and text[end - 1] == "\n" else line_end(text, end)


def with_lines(head: str, lines: str, tail: str) -> str:
    """Return `lines` inserted between two parts of a text, with the text's line endings."""
    newline = "\r\n" if "\r\n" in head or "\r\n" in tail else "\n"
    if head and not head.endswith("\n"):
        head += newline
    return head + lines.replace("\n", newline) + tail


def last_scalar(node: Node) -> Node:
    """Return the last value in lines of its own: a scalar, or a collection in brackets or braces."""
    match node:
        case YamlSequence(items=items, flow=False) if items:
            return last_scalar(items[-1])
        case YamlMapping(entries=entries, flow=False) if entries:
            return last_scalar(entries[-1][1])
    return node


def with_last_lines(text: str, lines: str) -> str:
    """Return the text with lines at the end of its document."""
    end = found.start() if (found := _DOCUMENT_END.search(text)) else len(text)
    return with_lines(text[:end], lines, text[end:])


def with_value(text: str, node: Node, value: str) -> str:
    """Return the text with another value in place of a node, on one line."""
    start, end = node.start.index, node.end.index
    if start < end and text[end - 1] == "\n":  # a block scalar
        end -= 2 if text[end - 2 : end] == "\r\n" else 1
    space = "" if text[start - 1].isspace() else " "
    return f"{text[:start]}{space}{value}{text[end:]}"


def with_flow_item(text: str, node: YamlMapping | YamlSequence, item: str) -> str:
    """Return the text with an item, or a key and its value, at the end of a collection in brackets or braces."""
    values = node.items if isinstance(node, YamlSequence) else tuple(value for _, value in node.entries)
    place = values[-1].end.index if values else node.start.index + 1
    return f"{text[:place]}{', ' if values else ''}{item}{text[place:]}"


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
