"""Painter of rows: one row as a strip of styled cells."""

from rich.segment import Segment
from rich.style import Style
from textual.cache import FIFOCache
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.tui.widgets.rows import Row
from agent_workbench.tui.widgets.text_selection import with_selection
from agent_workbench.tui.widgets.tones import CURSOR, CURSOR_BLURRED, SELECTED, Tones
from agent_workbench.views.blocks import Tone

Painted = tuple[Row, int, int, bool, bool]
MOST_ROWS = 256
"""Painted rows that are kept."""


class RowPainter:
    """Paints rows on the background of a widget, each once; `clear` must follow every change of its styles."""

    def __init__(self, widget: Widget) -> None:
        self.tones = Tones(widget)
        self._widget = widget
        self._base: Style | None = None
        self._painted: FIFOCache[Painted, Strip] = FIFOCache(MOST_ROWS)
        self._blank = Strip([])

    def clear(self) -> None:
        """Drop the styles that were computed for the old theme."""
        self.tones.clear()
        self._base = None
        self._painted.clear()
        self._blank = Strip([])

    @property
    def base(self) -> Style:
        """Style of the widget's background."""
        if self._base is None:
            self._base = self._widget.rich_style
        return self._base

    def blank(self, width: int) -> Strip:
        """Return an empty row."""
        if self._blank.cell_length != width:
            self._blank = Strip.blank(width, self.base)
        return self._blank

    def paint(self, row: Row, x: int, width: int, *, cursor: bool) -> Strip:
        """Return `width` cells of a row from cell `x` on; a sign at the right edge marks a row that is cut."""
        focused = cursor and self._widget.has_focus
        key = (row, x, width, cursor, focused)
        strip = self._painted.get(key)
        if strip is None:
            strip = self._painted[key] = self._paint(row, x, width, cursor=cursor, focused=focused)
        return strip

    def _paint(self, row: Row, x: int, width: int, *, cursor: bool, focused: bool) -> Strip:
        base, spans = self.base, row.spans
        if cursor:
            base += self.tones[CURSOR if focused else CURSOR_BLURRED]
            if focused and not self.tones.mixes:  # each colour would be another patch in what is reversed
                spans = tuple((text, self._style(tone).without_color) for text, tone in spans)
        fill = base if row.fill is None else base + self._style(row.fill)
        segments = [Segment(text, fill + self._style(tone)) for text, tone in spans]
        cells = row.cells
        if not x and cells <= width:  # nearly every row: no other strip is made on the way
            rest = [Segment(" " * (width - cells), fill)] if cells < width else []
            return Strip(segments + rest, width)
        shown = Strip(segments, cells).crop_extend(x, x + width, fill)
        if cells <= x + width:
            return shown
        return Strip.join([shown.crop(0, width - 1), Strip([Segment("›", fill + self._style(Tone.KEY))])])

    def select(self, strip: Strip, x: int, span: tuple[int, int] | None) -> Strip:
        """Return a strip that begins at cell `x` of its row, with selected cells marked; an end of -1 is the last."""
        if span is None:
            return strip
        end = strip.cell_length if span[1] < 0 else span[1] - x
        return with_selection(strip, span[0] - x, end, self.tones[SELECTED])

    def _style(self, tone: Tone | Style) -> Style:
        return tone if isinstance(tone, Style) else self.tones[tone]
