"""Rows of Markdown: wrapped to a width behind the label of its block, its code highlighted in a thread."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.style import Style

from agent_workbench.tui.widgets.colours import Lines, coloured_lines
from agent_workbench.tui.widgets.rows import Row, Span, linked
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.markdown import MarkdownPart, markdown_parts

LEAST_CELLS, BEYOND_LINES = 8, 50
MOST_COLOURED_CHARS, PART_CHARS, LONGEST_LINE = 20_000, 1_000, 300
"""Sizes of the code that is highlighted, of what is lexed at once, and of its lines.

The expressions of a lexer take time with the square of these, and hold up the screen, in a thread too.
"""
MOST_KEPT = 256
LANGUAGES = """
bash c c# c++ console cpp cs csharp css diff docker dockerfile elixir go graphql haskell hcl html http ini java
javascript js json jsx kotlin lua make makefile markdown md nix objective-c perl php powershell proto protobuf py pycon
python r rb rs ruby rust scala scss sh shell sql swift terraform toml ts tsx typescript vue xml yaml yml zig zsh
"""
"""Languages that are highlighted: their lexers were measured. That of systemd takes two minutes for three lines."""


class Range(Struct, frozen=True):
    """Look of the characters from `start` to `end` of a text."""

    start: int
    end: int
    look: Tone | Style


class CodeColours:
    """Highlighted code of replies, by language and text. What is `wanted` is to be highlighted next."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Lines] = {}
        self.wanted: dict[tuple[str, str], None] = {}
        self.dark: bool | None = None

    def of(self, language: str, text: str) -> Lines | None:
        """Return the highlighted lines, None as long as there are none."""
        key = (language.lower(), text)
        if key not in self._known and key[0] in LANGUAGES.split() and len(text) <= MOST_COLOURED_CHARS:
            self.wanted[key] = None
        return self._known.get(key)

    async def highlight(self, *, dark: bool) -> None:
        """Highlight what is wanted; what was highlighted for another theme is forgotten."""
        if dark is not self.dark:
            self._known.clear()
        self.dark = dark
        wanted, self.wanted = self.wanted, {}
        for language, text in wanted:
            found: Lines = []
            for part in _parts(text):
                lines = await asyncio.to_thread(coloured_lines, "", "\n".join(part), dark, language)
                found += [*lines, *([] for _ in part[len(lines) :])]  # without blank lines at its end
            self._known[language, text] = found
        # Plain lines: what is on screen and forgotten would be wanted again, without an end.
        self._known |= {key: [] for key in list(self._known)[:-MOST_KEPT]}


def _parts(code: str) -> Iterator[list[str]]:
    """Yield the lines of code in runs that are lexed at once."""
    part, size = list[str](), 0
    for line in code.split("\n"):
        if size + len(line) > PART_CHARS and part:
            yield part
            part, size = [], 0
        part.append(line if len(line) <= LONGEST_LINE else "")
        size += len(part[-1])
    yield part


def markdown_rows(
    block: Block, item: int, width: int, label_cells: int, expanded: bool, colours: CodeColours
) -> Iterator[Row]:
    """Yield the rows of a block of Markdown, with its label beside the first one; a very long text is folded."""
    label = block.label
    for part, held_back in (_folded(each, expanded=expanded) for each in markdown_parts(block.text)):
        if part.space_before:
            yield Row((("", Tone.PLAIN),), item)
        for row in _part_rows(part, item, max(LEAST_CELLS, width - label_cells - cell_len(part.lead)), colours):
            gutter = f"{label:<{label_cells - 1}} " if label_cells else ""
            yield Row(((gutter, block.label_tone), *row.spans), item, lead=label_cells + row.lead, link=row.link)
            label = ""
        if held_back:
            said = f"⋯ {held_back:,} lines more"
            yield Row(((" " * label_cells, Tone.DIM), (said, Tone.HUNK)), item, lead=label_cells)


def _folded(part: MarkdownPart, *, expanded: bool) -> tuple[MarkdownPart, int]:
    """Return what is shown of a part, and the number of lines that are not."""
    lines = part.text.split("\n", BEYOND_LINES) if part.beyond and not expanded else []
    if len(lines) <= BEYOND_LINES:
        return part, 0
    return replace(part, text="\n".join(lines[:-1])), lines[-1].count("\n") + 1


def _part_rows(part: MarkdownPart, item: int, room: int, colours: CodeColours) -> Iterator[Row]:
    """Yield the rows of a part in `room` cells, behind its lead."""
    ranges, lead, start = _ranges(part, colours), part.lead, 0
    for line in part.text.split("\n"):
        at = start
        for link, piece in linked(line, room):
            at += len(link) if link != "\n" else 0
            spans = ((lead, Tone.DIM), *_marked(piece, at, ranges, part.tone))
            yield Row(spans, item, lead=0 if lead.strip() else cell_len(lead), link=link)
            lead, at = part.rest, at + len(piece)
        start += len(line) + 1


def _ranges(part: MarkdownPart, colours: CodeColours) -> Sequence[Range]:
    if part.tone is not Tone.CODE:
        return [Range(mark.start, mark.end, mark.tone) for mark in part.marks]
    ranges, at = list[Range](), 0
    for line, spans in zip(part.text.split("\n"), colours.of(part.language, part.text) or (), strict=False):
        start, shown = at, "".join(text for text, _ in spans)
        for text, look in spans if shown and line.startswith(shown) else ():
            ranges.append(Range(start, start + len(text), look))
            start += len(text)
        at += len(line) + 1
    return ranges


def _marked(piece: str, at: int, ranges: Sequence[Range], tone: Tone) -> Iterator[Span]:
    """Yield a piece of a text that begins at character `at`, with the looks of the ranges."""
    done = 0
    for each in ranges[bisect_left(ranges, at, key=lambda known: known.end) :]:
        start, end = max(done, each.start - at), min(len(piece), each.end - at)
        if start >= len(piece):
            break
        if start < end:
            if done < start:
                yield piece[done:start], tone
            yield piece[start:end], each.look
            done = end
    if done < len(piece) or not piece:
        yield piece[done:], tone
