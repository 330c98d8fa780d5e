"""Text selected in rows, without labels, line numbers and line breaks of the layout."""

from collections.abc import Callable

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Tone

MOST_SELECTED_ROWS = 20_000


def selected_text(row_at: Callable[[int], Row], count: int, selection: Selection) -> str:
    """Return the selected text of `count` rows; offsets of the selection are cells and rows."""
    first = selection.start.y if selection.start is not None else 0
    last = min(count - 1, selection.end.y if selection.end is not None else count - 1, first + MOST_SELECTED_ROWS)
    column = selection.start.x if selection.start is not None else 0
    text: list[str] = []
    for number in range(max(0, first), last + 1):
        row = row_at(number)
        start, end = selection.get_span(number) or (0, 0)
        lead, until, link = _place(row, column)
        piece = _cells(row, max(start, lead), until if end < 0 else min(end, until))
        text.append(f"{link if text else ''}{piece}")
    return "\n".join(line.rstrip() for line in "".join(text).split("\n"))


def _place(row: Row, column: int) -> tuple[int, int, str]:
    """Return where the text of a row begins and ends, and its link; of two sides, those of the clicked one."""
    if not row.pieces or row.lead:
        line, tone = row.spans[-1] if row.spans else ("", Tone.PLAIN)
        ruled = cell_len(line) + 1 if tone is Tone.RULE else 0
        return row.lead, row.cells - ruled, row.link
    side = next((piece for piece in reversed(row.pieces) if piece.at <= column), row.pieces[0])
    return side.at, side.at + side.cells, "" if side.start else row.link


def _cells(row: Row, start: int, end: int) -> str:
    text = "".join(" " * cell_len(each) if tone is Tone.RULE else each for each, tone in row.spans)
    if text.isascii():
        return text[start:end]
    kept, at = [], 0
    for char in text:
        if start <= at < end:
            kept.append(char)
        at += cell_len(char)
    return "".join(kept)


def with_selection(strip: Strip, start: int, end: int, look: Style) -> Strip:
    """Return a strip whose cells from `start` to before `end` look selected."""
    start, end = max(0, start), min(end, strip.cell_length)
    if start >= end:
        return strip
    middle = [Segment(text, (style or Style()) + look) for text, style, _ in strip.crop(start, end)]
    return Strip.join([strip.crop(0, start), Strip(middle), strip.crop(end)])
