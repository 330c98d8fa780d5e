"""Screen as an SVG without scripts or external resources; its text stays text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

FONT_PX = 14
CELL_PX, LINE_PX = 8.4, 17
BASE_PX = 13
MARGIN_PX = 10
FONTS = "'DejaVu Sans Mono', Menlo, Consolas, ui-monospace, monospace"
TEXT, GROUND = "#e0e0e0", "#121212"
"""Colours where a style names none."""
# Characters that XML cannot hold, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_WORDS = re.compile(r"[^ ]+(?: [^ ]+)*")


def to_svg(lines: Iterable[Iterable[Segment]], title: str) -> str:
    """Return these lines as an SVG with a `title` for readers who do not see it.

    The same lines give the same bytes.
    """
    rows = [list(line) for line in lines]
    cells = max((sum(cell_len(each.text) for each in row) for row in rows), default=0)
    ground = next((_ground(each.style) for row in rows for each in row), GROUND)
    width, height = cells * CELL_PX + 2 * MARGIN_PX, len(rows) * LINE_PX + 2 * MARGIN_PX
    behind = [each for number, row in enumerate(rows) for each in _behind(row, number, ground)]
    text = [each for number, row in enumerate(rows) for each in _text(row, number)]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_px(width)} {_px(height)}" '
            f'width="{_px(width)}" height="{_px(height)}" role="img">',
            f"<title>{_plain(title)}</title>",
            f'<rect width="100%" height="100%" rx="6" fill="{ground}"/>',
            f'<g transform="translate({MARGIN_PX},{MARGIN_PX})" shape-rendering="crispEdges">',
            *behind,
            "</g>",
            f'<g transform="translate({MARGIN_PX},{MARGIN_PX})" font-family="{FONTS}" font-size="{FONT_PX}">',
            *text,
            "</g>",
            "</svg>\n",
        )
    )


def _behind(row: Sequence[Segment], number: int, ground: str) -> Iterator[str]:
    at = start = 0
    colour = ground
    for segment in (*row, Segment("")):
        mine = _ground(segment.style) if segment.text else ""
        if mine != colour:
            if at > start and colour != ground:
                yield (
                    f'<rect x="{_px(start * CELL_PX)}" y="{number * LINE_PX}" '
                    f'width="{_px((at - start) * CELL_PX)}" height="{LINE_PX}" fill="{colour}"/>'
                )
            start, colour = at, mine
        at += cell_len(segment.text)


def _text(row: Sequence[Segment], number: int) -> Iterator[str]:
    at = 0
    for segment in row:
        look = _look(segment.style or Style())
        for run, cells in _runs(segment.text):
            # Runs of spaces are skipped: renderers of SVG do not agree on how to keep them.
            for words in _WORDS.finditer(run):
                start, width = at + cell_len(run[: words.start()]), cell_len(words[0])
                yield (
                    f'<text x="{_px(start * CELL_PX)}" y="{number * LINE_PX + BASE_PX}" '
                    f'textLength="{_px(width * CELL_PX)}"{look}>{_plain(words[0])}</text>'
                )
            at += cells


def _runs(text: str) -> Iterator[tuple[str, int]]:
    """Yield runs of characters that are one cell wide, and runs of wide ones, each with its number of cells.

    With a run for each width, text is placed as in a terminal whatever the fonts are.
    """
    if text.isascii():
        yield text, len(text)
        return
    run, wide = "", False
    for char in text:
        cells = cell_len(char)
        if run and cells and (cells > 1) != wide:
            yield run, cell_len(run)
            run = ""
        wide = cells > 1 if cells else wide
        run += char
    yield run, cell_len(run)


def _look(style: Style) -> str:
    fore = _hex(style.bgcolor, GROUND) if style.reverse else _hex(style.color, TEXT)
    lines = " ".join(name for name, on in (("underline", style.underline), ("line-through", style.strike)) if on)
    return "".join(
        (
            f' fill="{fore}"',
            ' font-weight="bold"' if style.bold else "",
            ' font-style="italic"' if style.italic else "",
            ' fill-opacity="0.6"' if style.dim else "",
            f' text-decoration="{lines}"' if lines else "",
        )
    )


def _ground(style: Style | None) -> str:
    if style is None:
        return GROUND
    return _hex(style.color, TEXT) if style.reverse else _hex(style.bgcolor, GROUND)


def _hex(color: Color | None, default: str) -> str:
    return default if color is None or color.is_default else color.get_truecolor().hex


def _plain(text: str) -> str:
    return escape(_NO_XML.sub("�", text), quote=False)


def _px(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
