"""Markdown that a model wrote, as parts to lay out. It is foreign text: bounded, and without links to follow."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from msgspec import Struct, field

from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST_CHARS, MOST_LINES = 20_000, 600
"""Limits of the text that is parsed; what is beyond is shown as it is written."""
MOST_INLINE_CHARS, MOST_BRACKETS = 2_000, 50
"""Limits of a paragraph; a larger one is shown as it is written, since brackets are read in quadratic time."""
MOST_NESTING = 20
MOST_LEAD_CELLS = 16
MOST_COLUMNS, MOST_COLUMN_CELLS = 12, 40
HREF_CHARS = 200
RULE = "───"
_LANGUAGE = re.compile(r"[\w+#.-]{1,24}")
_TONES = {"strong": Tone.STRONG, "em": Tone.EMPHASIS, "s": Tone.GONE}


class Mark(Struct, frozen=True):
    """Tone of the characters from `start` to `end` of a text."""

    start: int
    end: int
    tone: Tone


class MarkdownPart(Struct, frozen=True):
    """A paragraph, heading, item, table or piece of code. Its `marks` are in order and do not overlap.

    `lead` precedes the first row, `rest` each other one, with as many cells. `language` is that of code. `beyond` marks
    the rest of a text that is too long.
    """

    text: str
    tone: Tone = Tone.PLAIN
    marks: tuple[Mark, ...] = ()
    lead: str = ""
    rest: str = ""
    language: str = ""
    space_before: bool = False
    beyond: bool = False


class Inline(Struct):
    """Text with its marks while it is made."""

    text: str = ""
    marks: list[Mark] = field(default_factory=list)

    def add(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Add text in a tone."""
        if tone is not Tone.PLAIN and text:
            self.marks.append(Mark(len(self.text), len(self.text) + len(text), tone))
        self.text += text

    def join(self, other: "Inline", tone: Tone = Tone.PLAIN) -> None:
        """Add another one; what it does not mark gets a tone."""
        at = 0
        for mark in other.marks:
            self.add(other.text[at : mark.start], tone)
            self.add(other.text[mark.start : mark.end], mark.tone)
            at = mark.end
        self.add(other.text[at:], tone)


@lru_cache(maxsize=128)
def markdown_parts(text: str) -> tuple[MarkdownPart, ...]:
    """Return the parts of a sanitized text in Markdown."""
    lines = text.split("\n")
    end = next((at for at, size in enumerate(_sizes(lines)) if size > MOST_CHARS or at >= MOST_LINES), len(lines))
    parts = _parsed(lines[:end])
    if end < len(lines):
        parts.append(MarkdownPart("\n".join(lines[end:]), space_before=bool(parts), beyond=True))
    return tuple(parts)


def _sizes(lines: "Sequence[str]") -> "list[int]":
    sizes, total = [], 0
    for line in lines:
        total += len(line) + 1
        sizes.append(total)
    return sizes


def _parsed(lines: "Sequence[str]") -> list[MarkdownPart]:
    parser = _parser()
    if any(line.count("|") > MOST_COLUMNS + 1 and not line.strip("|:- >\t") for line in lines):
        # The parser fills each row up to as many cells as the line below the head has.
        parser.disable("table")
    tokens = parser.parse("\n".join(lines))
    # The parser leaves out what is nested deeper.
    if any(token.nesting > 0 and token.level >= MOST_NESTING - 1 for token in tokens):
        return [MarkdownPart("\n".join(lines))]
    return _Writer(parser, lines).write(tokens)


def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # 40 ms that only a reply in Markdown costs

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MOST_NESTING})
    # Entities and addresses in angle brackets would bring characters past the sanitizer, since both are decoded;
    # references are read in quadratic time.
    parser.enable(["table", "strikethrough"]).disable(["entity", "autolink", "reference", "inline"])
    return parser


class _Level(Struct):
    """An open item or quote; `lead` stands before its first row."""

    lead: str
    rest: str


class _Writer:
    """Writes tokens as parts; `lines` are their source."""

    def __init__(self, parser: "MarkdownIt", lines: "Sequence[str]") -> None:
        self._parser = parser
        self._lines = lines
        self._parts: list[MarkdownPart] = []
        self._levels: list[_Level] = []
        self._numbers: list[int | None] = []
        self._rows: list[list[Inline]] = []
        self._table: Token | None = None
        self._heading = self._gap = False

    def write(self, tokens: "Sequence[Token]") -> list[MarkdownPart]:
        """Return the parts of the tokens."""
        for token in tokens:
            self._gap = self._gap or (token.level == 0 and token.nesting >= 0)
            self._write(token)
        return self._parts

    def _write(self, token: "Token") -> None:
        match token.type:
            case "inline":
                self._inline(token)
            case "fence" | "code_block":
                found = _LANGUAGE.match(token.info)
                self._add(token.content.removesuffix("\n"), Tone.CODE, indent="  ", language=found[0] if found else "")
            case "hr":
                self._add(RULE, Tone.DIM)
            case "bullet_list_open":
                self._numbers.append(None)
            case "ordered_list_open":
                start = token.attrGet("start")
                self._numbers.append(1 if start is None else int(start))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                self._open_item()
            case "blockquote_open":
                self._levels.append(_Level("│ ", "│ "))
            case "list_item_close" | "blockquote_close":
                self._levels.pop()
            case "heading_open":
                self._heading = True
            case "table_open":
                self._table, self._rows = token, []
            case "tr_open":
                self._rows.append([])
            case "table_close":
                self._write_table()
            case _:
                pass

    def _open_item(self) -> None:
        number = self._numbers[-1]
        lead = "• " if number is None else f"{number}. "
        if number is not None:
            self._numbers[-1] = number + 1
        self._levels.append(_Level(lead, " " * len(lead)))

    def _inline(self, token: "Token") -> None:
        read = _inline(self._parser, token.content)
        if self._table is not None:
            self._rows[-1].append(read)
            return
        self._add(read.text, Tone.STRONG if self._heading else Tone.PLAIN, read)
        self._heading = False

    def _add(
        self, text: str, tone: Tone = Tone.PLAIN, read: Inline | None = None, *, indent: str = "", language: str = ""
    ) -> None:
        lead, rest = "".join(each.lead for each in self._levels), "".join(each.rest for each in self._levels)
        for level in self._levels:
            level.lead = level.rest
        quoted = tone is Tone.PLAIN and any(each.rest.strip() for each in self._levels)
        self._parts.append(
            MarkdownPart(
                text,
                Tone.DIM if quoted else tone,
                tuple(read.marks) if read is not None else (),
                _bounded(lead) + indent,
                _bounded(rest) + indent,
                language,
                space_before=self._gap and bool(self._parts),
            )
        )
        self._gap = False

    def _write_table(self) -> None:
        table, self._table = self._table, None
        first, end = table.map if table is not None and table.map is not None else (0, 0)
        columns, source = range(len(self._rows[0])), self._lines[first:end]
        # The parser leaves out the cells that a row has too many.
        if len(columns) > MOST_COLUMNS or any(line.count("|") > len(columns) + 1 for line in source):
            self._add("\n".join(source))
            return
        widths = [min(MOST_COLUMN_CELLS, max(_cells(row[at].text) for row in self._rows)) for at in columns]
        written = Inline()
        for number, row in enumerate(self._rows):
            for at, cell in enumerate(row):
                written.join(cell, Tone.PLAIN if number else Tone.STRONG)
                if at + 1 < len(row):
                    written.add(" " * max(0, widths[at] - _cells(cell.text)) + "  ")
            if not number:
                written.add("\n")
                written.add("  ".join("─" * width for width in widths), Tone.DIM)
            written.add("\n" * (number + 1 < len(self._rows)))
        self._add(written.text, read=written)


def _inline(parser: "MarkdownIt", content: str) -> Inline:
    """Return the text of a paragraph or a cell, with the address behind each link."""
    read = Inline()
    if len(content) > MOST_INLINE_CHARS or content.count("[") > MOST_BRACKETS:
        read.add(content)
        return read
    tokens: list[Token] = []
    parser.inline.parse(content, parser, {}, tokens)
    tones, links = [Tone.PLAIN], list[tuple[int, str]]()
    for token in tokens:
        match token.type:
            case "code_inline":
                read.add(token.content, Tone.CODE)
            case "softbreak" | "hardbreak":
                read.add("\n")
            case "link_open":
                links.append((len(read.text), str(token.attrGet("href") or "")))
            case "link_close":
                start, href = links.pop()
                _add_address(read, href, read.text[start:])
            case "image":
                read.add(token.content, tones[-1])
                _add_address(read, str(token.attrGet("src") or ""), token.content)
            case _ if token.nesting > 0:
                tones.append(_TONES.get(token.tag, Tone.PLAIN))
            case _ if token.nesting < 0:
                tones.pop()
            case _:
                read.add(token.content, tones[-1])
    return read


def _add_address(read: Inline, address: str, shown: str) -> None:
    if address and address != shown:
        read.add(f" ({sanitize_line(address, HREF_CHARS)})", Tone.DIM)


def _bounded(lead: str) -> str:
    return lead[max(0, len(lead) - MOST_LEAD_CELLS) :]


def _cells(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if east_asian_width(each) in "WF" else 1 for each in text)
