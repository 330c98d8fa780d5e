"""Nodes and lines of a YAML document with their positions, and edits of its text at these positions."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from agent_workbench.core.text.amounts import quoted

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
_DOCUMENT_END = re.compile(r"^\.\.\.(?=\s|$)", re.MULTILINE)


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
