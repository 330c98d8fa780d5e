"""Nodes of a YAML document with their positions, composed strictly from a parser's events."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from agent_workbench.core.text.messages import quoted

MAX_BYTES = 1_000_000
MAX_DEPTH = 20


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
