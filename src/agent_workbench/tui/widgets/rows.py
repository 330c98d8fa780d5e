"""Rows of text: entries wrapped to a width, in tones, drawn one by one, within a border and padding."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual._styles_cache import RenderLineCallback, StylesCache
from textual.cache import FIFOCache
from textual.color import Color
from textual.css.styles import StylesBase
from textual.geometry import Region, Size, Spacing
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.views.blocks import Block, Entry, Tone

Span = tuple[str, Tone | Style]
INDENT_CELLS = 2
BlockRows = Callable[[Block, int, int, int, bool], Iterator["Row"]]
"""Layout of a block: item, width, cells of the label, and whether it is expanded."""
_JOINER = "\u200d"
_UNJOINED_CELLS = {"\ufe0f": 1, **dict.fromkeys("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff", 2)}
SIGNS = {Tone.ADDED: "+", Tone.REMOVED: "-"}

MOST_LINES = 256
"""Lines that are kept: a few screens."""


class Piece(Struct, frozen=True):
    """Part of a source line that has to be seen in full, at its position in a row.

    `source` is the number of the line; the part begins at the line's cell `start`, has `cells`, and stands at the row's
    cell `at`. `size` is the width of the whole line.
    """

    source: int
    start: int
    cells: int
    at: int
    size: int

    @property
    def ends(self) -> bool:
        """True if the line ends with it."""
        return self.start + self.cells == self.size


class Row(Struct, frozen=True):
    """A row: its spans, the entry it belongs to, the tone that fills it to the edge, and the source lines it shows.

    `lead` are the cells before its text, such as a label; `link` joined its text to that of the row before. They
    keep layout out of copied text.
    """

    spans: tuple[Span, ...]
    item: int = -1
    fill: Tone | None = None
    pieces: tuple[Piece, ...] = ()
    lead: int = 0
    link: str = "\n"

    @property
    def cells(self) -> int:
        """Width of the row."""
        return sum(cell_len(text) for text, _ in self.spans)


def wrap(line: str, width: int) -> Iterator[str]:
    """Yield `line` in parts of at most `width` cells, broken after words where possible; nothing is left out."""
    return (piece for _, piece in linked(line, width))


def linked(line: str, width: int) -> Iterator[tuple[str, str]]:
    """Yield the parts of a line, each after the spaces that were dropped at the break before it."""
    at, link = 0, "\n"
    while (fits := _fitting(line, at, width)) < len(line):
        space = line.rfind(" ", at + 1, fits + 1)
        cut = space + 1 if space - at > (fits - at) // 3 else fits
        piece = line[at:cut].rstrip(" ") if cut > fits else line[at:cut]
        yield link, piece
        at, link = cut, line[at + len(piece) : cut]
    yield link, line[at:]


def cut_line(line: str, width: int) -> list[str]:
    """Return `line` in parts of at most `width` cells, cut after a word near the edge if there is one."""
    pieces, at = [], 0
    while (fits := _fitting(line, at, width)) < len(line):
        cut = line.rfind(" ", at + (fits - at) * 2 // 3, fits) + 1 or fits
        pieces.append(line[at:cut])
        at = cut
    return [*pieces, line[at:]] if at < len(line) or not pieces else pieces


def _fitting(text: str, at: int, width: int) -> int:
    """Return the end of the text that fits from character `at` on: at least one character, if there is any.

    The parts of an emoji count one by one, as terminals draw them that do not join them.
    """
    end = at + width
    if text.isascii() or text[at : end + 1].isascii():
        return min(len(text), max(at + 1, end))
    cells = 0
    for number in range(at, len(text)):
        char = text[number]
        cells += _UNJOINED_CELLS.get(char) or cell_len(char)
        if cells > width:
            return max(at + 1, _cluster_start(text, number, at))
    return len(text)


def _cluster_start(text: str, number: int, least: int) -> int:
    """Return the start of the grapheme cluster that contains character `number`, not before `least`."""
    while number > least and (not cell_len(text[number]) or text[number - 1] == _JOINER):
        number -= 1
    return number


def entry_rows(
    entry: Entry, item: int, width: int, label_cells: int, *, expanded: bool, rows_of: "BlockRows | None" = None
) -> Iterator[Row]:
    """Yield the rows of an entry; folded blocks say how many lines are hidden.

    Labels that would take more than a quarter of the width get a row of their own. `rows_of` yields the rows of a block
    (None: `block_rows`).
    """
    rows_of = rows_of or block_rows
    above = width < 4 * label_cells
    for number, block in enumerate(entry.blocks):
        if block.space_before and (item > 0 or number > 0):
            yield Row((("", Tone.PLAIN),), item if number else -1)
        if not above:
            yield from rows_of(block, item, width, label_cells, expanded)
            continue
        rows = rows_of(replace(block, label=""), item, width, INDENT_CELLS, expanded)
        if block.label:
            yield Row(((block.label, block.label_tone),), item, lead=cell_len(block.label))
            yield from (replace(row, link="") for row in islice(rows, 1))
        yield from rows


def block_rows(block: Block, item: int, width: int, label_cells: int, expanded: bool) -> Iterator[Row]:
    """Yield the rows of a block, with its label beside the first one."""
    label_cells += block.indent
    room = max(8, width - label_cells)
    lines = [block.folded] if block.folded and not expanded else block.text.split("\n")
    if block.clips and not expanded:
        cut = (line if cell_len(line) <= room else f"{line[: _fitting(line, 0, room - 1)]}…" for line in lines)
        pieces = [("\n", piece) for piece in cut]
    else:
        pieces = [piece for line in lines for piece in linked(line, room)]
    held_back = 0
    if block.fold_lines and not expanded and len(pieces) > block.fold_lines + 1:
        held_back = len(pieces) - block.fold_lines
        pieces = pieces[-block.fold_lines :] if block.fold_end else pieces[: block.fold_lines]
    said = block.more or f"⋯ {held_back} lines more"
    labelled = bool(block.more) and block.fold_end
    if held_back and block.fold_end:
        gutter = _gutter(block, label_cells, first=labelled)
        yield Row(((gutter, block.label_tone), (said, Tone.HUNK)), item, lead=label_cells)
    for number, (link, piece) in enumerate(pieces):
        row = _row(block, item, piece, width, label_cells, first=number == 0 and not (held_back and labelled))
        yield row if link == "\n" else replace(row, link=link)
    if held_back and not block.fold_end:
        yield Row(((" " * label_cells, Tone.DIM), (said, Tone.HUNK)), item, lead=label_cells)


def _row(block: Block, item: int, piece: str, width: int, label_cells: int, *, first: bool) -> Row:
    if block.rule:
        line = "─" * max(0, width - cell_len(piece) - 1)
        return Row(((f"{piece} ", block.tone), (line, Tone.RULE)), item)
    gutter = _gutter(block, label_cells, first=first)
    return Row(((gutter, block.label_tone), (piece, block.tone)), item, lead=label_cells)


def _gutter(block: Block, label_cells: int, *, first: bool) -> str:
    return f"{block.label if first else '':<{label_cells - 1}} " if label_cells else ""


class FramedLines(StylesCache):
    """Textual's line cache of a widget, by content: a line that moves on the screen is the same strip.

    Textual filters, cuts and writes a strip once, so a pane that scrolls costs little more than its new lines.
    """

    def __init__(self) -> None:
        super().__init__()
        self._framed: FIFOCache[tuple[Segment, ...], Strip] = FIFOCache(MOST_LINES)
        self._look: tuple[object, ...] = ()

    def render_widget(self, widget: Widget, crop: Region) -> list[Strip]:
        styles = widget.styles
        edges = (widget.region.width, styles.padding, styles.border, styles.outline)
        look = (*edges, *widget.background_colors, widget.opacity, styles.text_opacity, styles.tint)
        if look != self._look:
            self._framed.clear()
            self._look = look
        return super().render_widget(widget, crop)

    def render_line(
        self,
        styles: StylesBase,
        y: int,
        size: Size,
        content_size: Size,
        padding: Spacing,
        base_background: Color,
        background: Color,
        render_content_line: RenderLineCallback,
        *others: Any,
    ) -> Strip:
        def framed(content: RenderLineCallback) -> Strip:
            place = (styles, y, size, content_size, padding, base_background, background)
            return super(FramedLines, self).render_line(*place, content, *others)

        gutter = styles.gutter
        if not gutter.top <= y < size.height - gutter.bottom:
            return framed(render_content_line)
        line = render_content_line(y - gutter.top)
        key = tuple(line)
        known = self._framed.get(key)
        if known is None:
            known = self._framed[key] = framed(lambda _: line)
        return known


def keep_lines(*widgets: Widget) -> None:
    """Keep the rendered lines of these widgets by content from now on."""
    for widget in widgets:
        if not isinstance(widget._styles_cache, FramedLines):
            widget._styles_cache = FramedLines()
