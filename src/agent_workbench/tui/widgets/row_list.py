"""Scrolling list of rows that are painted one by one, as quick with 50,000 as with five, and selection of its text."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.cache import FIFOCache
from textual.content import Content
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.selection import SELECT_ALL, Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from agent_workbench.tui.widgets.colours import CURSOR, CURSOR_BLURRED, SELECTED, Tones
from agent_workbench.tui.widgets.rows import Row, keep_lines
from agent_workbench.views.blocks import Tone

if TYPE_CHECKING:
    from agent_workbench.core.ports.machine import Clock


WIDTH_UNSEEN = 80
SYSTEM_CLASS = "-textual-system"
"""Class of the widgets of a screen that Textual adds, such as the one that holds the notices."""
NOTICE_GONE_SECONDS = 0.25
"""Time after which a line that a notice covers is drawn again."""

Painted = tuple[Row, int, int, bool, bool]
MOST_ROWS = 256
"""Painted rows that are kept."""

MOMENT_SECONDS = 0.3

MOST_SELECTED_ROWS = 20_000

Result = TypeVar("Result")


@dataclass
class Copied(Message, namespace="row_list"):
    """The user copies this text."""

    text: str


class RowList(ScrollView, can_focus=True):
    """Shows rows. Subclasses lay them out for a width in `lay_out`."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.rows: list[Row] = []
        self.cursor = -1
        self._painter = RowPainter(self)
        self._laid_out_width = 0
        self._end = FollowedEnd(self)
        self.notices = CoveringNotices(self)

    @property
    def follows(self) -> bool:
        """True while the list scrolls along with rows that are added at its end."""
        return False

    @property
    def room(self) -> Size:
        """Size in cells that the rows have."""
        return self.scrollable_content_region.size

    def show_title(self, title: str) -> None:
        """Set the title in the border, as plain text."""
        content = Content(title)
        if self._border_title != content:
            self.border_title = content

    def lay_out(self, width: int) -> None:
        """Make `self.rows` anew for `width` cells."""
        raise NotImplementedError

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def row_at(self, number: int) -> Row:
        """Return a row. Lists with very many rows make them here, when they are drawn."""
        return self.rows[number]

    def widest(self) -> int:
        """Return the cells of the widest row."""
        return max((row.cells for row in self.rows), default=0)

    def lay_out_again(self) -> None:
        """Make the rows anew for the current width; a list that is hidden keeps its last width."""
        if self.is_mounted and self.text_selection is not None:
            self.screen.clear_selection()
        self._laid_out_width = self.room.width or self._laid_out_width or WIDTH_UNSEEN
        self.lay_out(self._laid_out_width)
        self.rows_changed()

    def rows_changed(self, first: int = 0) -> None:
        """Fit the scroll size to the rows after those from `first` on changed, and follow their end if wanted."""
        self._end.fit(self._laid_out_width)
        self._end.follow()
        above = first - self.scroll_offset.y
        if above <= 0:
            self.refresh()
        elif above < self.size.height:
            self.refresh(Region(0, above, self.size.width, self.size.height - above))

    def on_resize(self) -> None:
        """Lay out for another width; stay at the end if the list was there."""
        if self.room.width not in (0, self._laid_out_width):
            self.lay_out_again()
        else:
            self._end.follow()

    def on_show(self) -> None:
        """Catch up with the size after the list was hidden."""
        keep_lines(self, self.vertical_scrollbar, self.horizontal_scrollbar)
        self.on_resize()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._end.scrolled(old_value, new_value)

    def row_drawn(self, row: Row, left: int, width: int) -> None:
        """Hook: `width` cells of a row are drawn and not covered by a notice, from cell `left` on."""

    def render_line(self, y: int) -> Strip:
        """Return one line of the widget."""
        x, top = self.scroll_offset
        width, number = self.room.width, top + y
        if not 0 <= number < self.row_count:
            return self._painter.blank(width)
        row = self.row_at(number)
        self.row_drawn(row, x, self.notices.uncovered(y, width))
        cursor = row.item >= 0 and row.item == self.cursor
        strip = self._painter.paint(row, x, width, cursor=cursor)
        selection = self.text_selection
        return strip if selection is None else self._painter.select(strip, x, selection.get_span(number))

    def offset_at(self, x: int, y: int) -> Offset:
        """Return the cell and the row at a position of the screen."""
        return Offset(x, y) - self.content_region.offset + self.scroll_offset

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the selected text without its layout, and the line break after it."""
        return selected_text(self.row_at, self.row_count, selection), "\n"

    def text_here(self) -> str:
        """Return the text under the cursor without its layout; all text if there is no cursor."""
        return selected_text(self.row_at, self.row_count, SELECT_ALL)

    def action_copy(self) -> None:
        """Copy the text that the mouse selected, else the text under the cursor."""
        chosen = self.screen.get_selected_text()
        self.screen.clear_selection()
        self.post_message(Copied(chosen or self.text_here()))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painter.clear()

    def action_line_down(self) -> None:
        self.scroll_relative(y=1, animate=False)

    def action_line_up(self) -> None:
        self.scroll_relative(y=-1, animate=False)

    def action_page_down(self) -> None:
        self.scroll_relative(y=max(1, self.room.height - 1), animate=False)

    def action_page_up(self) -> None:
        self.scroll_relative(y=-max(1, self.room.height - 1), animate=False)

    def action_to_top(self) -> None:
        self.scroll_to(y=0, animate=False)

    def action_to_bottom(self) -> None:
        self.scroll_to(y=max(0, self.row_count - self.room.height), animate=False)


class FollowedEnd:
    """Scroll size of a list, and the end that it scrolls along with. `reached` is True while the user is there."""

    def __init__(self, rows: RowList) -> None:
        self.reached = True
        self._rows = rows

    def fit(self, width: int) -> None:
        """Set the scroll size; the screen is laid out again only where the widget's own size depends on it."""
        rows = self._rows
        widest = rows.widest() if rows.styles.overflow_x == "auto" else 0
        size = Size(max(widest, width), rows.row_count)
        if not rows.container_size or rows.styles.auto_dimensions:
            rows.virtual_size = size
        elif size != rows.virtual_size:
            rows.set_reactive(RowList.virtual_size, size)
            rows._scroll_update(size)

    def follow(self) -> None:
        """Scroll to the end if the user was there, and once more when the sizes are settled."""
        if self._scroll():
            self.reached = True
            self._rows.call_after_refresh(self._scroll)

    def _scroll(self) -> bool:
        """Scroll to the end if it is followed; return whether it is."""
        if not (self._rows.follows and self.reached):
            return False
        self._rows.scroll_to(y=self._rows.row_count, animate=False)
        return True

    def scrolled(self, before: float, now: float) -> None:
        """Note whether the user is at the end now."""
        rows = self._rows
        if now >= min(rows.max_scroll_y, rows.row_count - rows.room.height):
            self.reached = True
        elif now < before:
            self.reached = False


class CoveringNotices:
    """Notices over a list of rows; lines under them are drawn again once the notices are gone."""

    def __init__(self, rows: RowList) -> None:
        self._rows = rows
        self._waits: Timer | None = None

    def uncovered(self, y: int, width: int) -> int:
        """Return the cells of a line of the list, from the left, that no notice covers."""
        screen, area = self._rows.screen, self._rows.content_region
        if not any(each.children for each in screen.children if each.has_class(SYSTEM_CLASS)):
            return width  # quickly: every line that is drawn comes here
        line = Region(area.x, area.y + y, width, 1)
        covering = [each.region for each in screen.query("Toast") if each.region.overlaps(line)]
        if covering and self._waits is None:
            self._waits = self._rows.set_timer(NOTICE_GONE_SECONDS, self._draw_again)
        return min((max(0, each.x - line.x) for each in covering), default=width)

    def _draw_again(self) -> None:
        self._waits = None
        self._rows.refresh()


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


class Readiness:
    """Remembers since when a decision is on screen. A key that waited in a queue counts from when it was pressed."""

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock
        self._key = ""
        self._since = 0.0

    def painted(self, key: str) -> None:
        """Note that `key` is on screen; only its first time counts."""
        if key != self._key:
            self._key, self._since = key, self._clock.monotonic_seconds()

    def begin_again(self) -> None:
        """Start the time anew, because another part is on screen now."""
        self._since = self._clock.monotonic_seconds()

    def ready(self, key: str, queued_seconds: float = 0.0) -> bool:
        """Return True if a decision about `key` counts; it was made `queued_seconds` ago."""
        return key == self._key and self._clock.monotonic_seconds() - queued_seconds - self._since >= MOMENT_SECONDS


def queued_seconds(pressed_at: float | None) -> float:
    """Return how long an input event waited, 0 for none; Textual stamps events with the process's monotonic time."""
    return 0.0 if pressed_at is None else max(0.0, time.monotonic() - pressed_at)


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


class SelectableScreen(Screen[Result]):
    """Knows which cell of which row is under the mouse, and ends a selection once it is copied."""

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the widget at a position and the cell in it; lists of rows know the cell without being drawn."""
        widget, _ = self.get_widget_at(x, y)
        if isinstance(widget, RowList):
            return widget, widget.offset_at(x, y)
        return super().get_widget_and_offset_at(x, y)

    def action_copy_text(self) -> None:
        super().action_copy_text()
        self.clear_selection()
