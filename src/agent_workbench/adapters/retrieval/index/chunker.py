"""Chunks of a file with their symbols and words: at definitions or headings, else windows of lines."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.ranking.tokens import count_stems

if TYPE_CHECKING:
    import tree_sitter


CHARS_PER_TOKEN = 4

# A definition with fewer lines stays in the chunk around it.
_MIN_LINES = 2
_SIGNATURE_CHARS = 400
_NAMES_SHOWN = 3
# No part can match in two ways: lines may be very long.
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*)")
_LETTER = re.compile(r"[^\W_]")
_FENCE = re.compile(r" {0,3}(```|~~~)")

LONGEST_NAME = 80
# Fields that hold a name, best first. In C it is in nested declarators; Rust's `impl` has a type only.
_FIELDS = ("name", "declarator", "left", "key", "type")
_MAX_DECLARATOR_DEPTH = 12


class IndexedChunk(Struct, frozen=True):
    """Chunk with the lines `first_line` to `last_line` (from 1, inclusive).

    Stems are counted in all its text (`body`), in the `names` of the definitions it contains or belongs to, and in its
    `comments` and docstrings.
    """

    first_line: int
    last_line: int
    symbol: str
    body: Mapping[str, int]
    names: Mapping[str, int]
    comments: Mapping[str, int]


class Definition(Struct, frozen=True):
    """Definition in rows `first` to `last` (from 0, inclusive), with its comments and decorators.

    `signature` is the row of its name. `inside` are the definitions it contains, in order.
    """

    name: str
    first: int
    last: int
    signature: int
    inside: tuple["Definition", ...] = ()


class Comment(Struct, frozen=True):
    """Comment or docstring, and its first row."""

    row: int
    text: str


class Outline(Struct, frozen=True):
    """Outline of a file: its definitions, nested and in order, and its comments."""

    definitions: tuple[Definition, ...] = ()
    comments: tuple[Comment, ...] = ()


class _Span(Struct, frozen=True):
    """Rows `first` to `last`. `signature` is the row of the definition that the span continues, -1 for none."""

    first: int
    last: int
    symbol: str
    signature: int = -1


def chunk_text(text: str, outline: Outline, max_tokens: int) -> tuple[IndexedChunk, ...]:
    """Return the chunks of a file in order: whole lines, at most `max_tokens` each unless a single line is longer."""
    return _Chunker(text.split("\n"), outline, max_tokens * CHARS_PER_TOKEN).chunks()


def markdown_outline(text: str) -> Outline:
    """Return the sections of a Markdown text as definitions."""
    found: list[tuple[int, str]] = []
    rows = text.split("\n")
    fence = ""
    for row, line in enumerate(rows):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
        elif not fence and (heading := _HEADING.fullmatch(line)):
            found.append((row, heading[1].rstrip().rstrip("#").rstrip()[:LONGEST_NAME]))
    ends = [row - 1 for row, _ in found[1:]] + [len(rows) - 1] * bool(found)
    return Outline(tuple(Definition(name, row, end, row) for (row, name), end in zip(found, ends, strict=True)))


class _Chunker:
    """Divides the lines of one file."""

    def __init__(self, lines: Sequence[str], outline: Outline, max_chars: int) -> None:
        self._lines = lines
        self._outline = outline
        self._max_chars = max_chars
        self._chars = list(accumulate(map((1).__add__, map(len, lines)), initial=0))
        self._named = sorted(_all(outline.definitions), key=lambda each: each.signature)
        self._name_rows = [each.signature for each in self._named]
        self._comment_rows = [each.row for each in outline.comments]

    def chunks(self) -> tuple[IndexedChunk, ...]:
        spans = self._spans(self._outline.definitions, 0, len(self._lines) - 1, "", -1)
        return tuple(self._chunk(part) for span in spans for part in self._parts(span))

    def _spans(
        self, definitions: Sequence[Definition], first: int, last: int, symbol: str, signature: int
    ) -> Iterator[_Span]:
        """Yield spans that together cover the rows `first` to `last`, in order."""
        row = first
        for each in definitions:
            start, end = max(each.first, row), min(each.last, last)
            if end - start + 1 < _MIN_LINES:
                continue
            if start > row:
                yield _Span(row, start - 1, symbol, signature)
            name = ".".join(part for part in (symbol, each.name) if part)
            inside = each.inside if self._size(start, end) > self._max_chars else ()
            yield from self._spans(inside, start, end, name, each.signature)
            row = end + 1
        if row <= last:
            yield _Span(row, last, symbol, signature)

    def _parts(self, span: _Span) -> Iterator[_Span]:
        """Yield the span in parts that are small enough, without blank lines at their ends.

        Parts without a word are left out.
        """
        first, last = span.first, span.last
        while first <= last:
            if not self._lines[first].strip():
                first += 1
                continue
            end = self._end_of_part(first, last)
            shown = end
            while not self._lines[shown].strip():
                shown -= 1
            if any(_LETTER.search(line) for line in self._lines[first : shown + 1]):
                yield _Span(first, shown, span.symbol, span.signature)
            first = end + 1

    def _end_of_part(self, first: int, last: int) -> int:
        """Return the last row of a part that begins at `first`: as much as fits, up to the best row for a cut."""
        fits = bisect_left(self._chars, self._chars[first] + self._max_chars + 1) - 2
        if fits >= last:
            return last
        if fits <= first:
            return first
        # An earlier cut would leave a part that is too small to be useful.
        earliest = first + (fits - first) // 3
        return min(range(fits, earliest, -1), key=self._cut_penalty, default=fits)

    def _cut_penalty(self, row: int) -> tuple[bool, int]:
        """Return a sort key, small for a good row to cut after: before a blank line, or at little indentation."""
        following = self._lines[row + 1]
        return bool(following.strip()), len(following) - len(following.lstrip())

    def _size(self, first: int, last: int) -> int:
        return self._chars[last + 1] - self._chars[first]

    def _chunk(self, span: _Span) -> IndexedChunk:
        text = "\n".join(self._lines[span.first : span.last + 1])
        inside = [each.name for each in self._between(span.first, span.last)]
        symbol = span.symbol or (", ".join(inside) if len(inside) <= _NAMES_SHOWN else "")
        names = [span.symbol.replace(".", " "), *inside]
        if 0 <= span.signature < span.first:
            names.append(self._lines[span.signature][:_SIGNATURE_CHARS])
        return IndexedChunk(
            span.first + 1,
            span.last + 1,
            symbol,
            count_stems(text),
            count_stems(" ".join(names)),
            count_stems(" ".join(self._comments(span.first, span.last))),
        )

    def _between(self, first: int, last: int) -> Sequence[Definition]:
        return self._named[bisect_left(self._name_rows, first) : bisect_left(self._name_rows, last + 1)]

    def _comments(self, first: int, last: int) -> Iterator[str]:
        rows = self._comment_rows
        for comment in self._outline.comments[bisect_left(rows, first) : bisect_left(rows, last + 1)]:
            yield comment.text


def _all(definitions: Sequence[Definition]) -> Iterator[Definition]:
    for each in definitions:
        yield each
        yield from _all(each.inside)


def name_of(node: "tree_sitter.Node", source: bytes, language: str) -> str:
    """Return the name that `node` in the tree of `source` defines, on one line; empty if it has none."""
    match language:
        case "html":
            return _element_name(node, source)
        case "css":
            name = _selector(node, source)
        case "go":
            name = ".".join(part for part in (_receiver(node, source), _named(node, source)) if part)
        case _:
            name = _named(node, source)
    return name[:LONGEST_NAME]


def text_of(node: "tree_sitter.Node", source: bytes) -> str:
    """Return the text of a node. Its own `text` would read the source byte by byte, because it was parsed in slices."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _named(node: "tree_sitter.Node", source: bytes) -> str:
    for _ in range(_MAX_DECLARATOR_DEPTH):
        inner = next((found for field in _FIELDS if (found := node.child_by_field_name(field)) is not None), None)
        if inner is None:
            break
        node = inner
        if not node.named_child_count or "declarator" not in node.type:
            return _one_line(node, source)
    return _one_line(node.named_children[0], source) if node.named_child_count else ""


def _one_line(node: "tree_sitter.Node", source: bytes) -> str:
    return " ".join(text_of(node, source).split("<", 1)[0].split()).replace("::", ".")


def _receiver(node: "tree_sitter.Node", source: bytes) -> str:
    """Return the receiver type of a Go method."""
    receiver = node.child_by_field_name("receiver")
    if receiver is None:
        return ""
    words = text_of(receiver, source).strip("()").split("[", 1)[0].split()
    return words[-1].lstrip("*") if words else ""


def _selector(node: "tree_sitter.Node", source: bytes) -> str:
    text = source[node.start_byte : min(node.end_byte, node.start_byte + 4 * LONGEST_NAME)].decode("utf-8", "replace")
    return " ".join(text.split("{", 1)[0].split())


def _element_name(node: "tree_sitter.Node", source: bytes) -> str:
    """Return `tag#id` of an HTML element."""
    start = next(iter(node.named_children), None)
    if start is None or not start.named_child_count:
        return ""
    tag, *attributes = (_one_line(child, source) for child in start.named_children)
    identifier = next((each[3:].strip("\"'") for each in attributes if each.startswith("id=")), "")
    return f"{tag}#{identifier}"[:LONGEST_NAME] if identifier else tag[:LONGEST_NAME]
