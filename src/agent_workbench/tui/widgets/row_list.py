"""A pane of rows that are drawn one by one: as quick with fifty thousand as with five."""

from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import SELECT_ALL, Selection
from textual.strip import Strip

from agent_workbench.tui.widgets.rows import Row
from agent_workbench.tui.widgets.text_selection import selected_text, with_selection
from agent_workbench.tui.widgets.tones import CURSOR, CURSOR_BLURRED, SELECTED, Tones
from agent_workbench.views.blocks import Tone

WIDTH_UNSEEN = 80


class RowList(ScrollView, can_focus=True):
    """Shows rows; subclasses lay them out for a width in `lay_out`."""

    @dataclass
    class Copied(Message):
        """The user wants this text to be in the clipboard."""

        text: str

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.rows: list[Row] = []
        self.cursor = -1
        self._tones = Tones(self)
        self._base: Style | None = None
        self._laid_out_width = 0
        self._at_end = True

    @property
    def follows(self) -> bool:
        """True while new rows are followed from the end."""
        return False

    @property
    def room(self) -> Size:
        """The cells that rows have."""
        return self.scrollable_content_region.size

    def show_title(self, title: str) -> None:
        """Write the pane's title as plain text."""
        content = Content(title)
        if self._border_title != content:
            self.border_title = content

    def lay_out(self, width: int) -> None:
        """Make `self.rows` anew for `width` cells."""
        raise NotImplementedError

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def row_at(self, number: int) -> Row:
        """Return a row; what has very many makes them here, as they are drawn."""
        return self.rows[number]

    def widest(self) -> int:
        """Return the cells of the widest row."""
        return max((row.cells for row in self.rows), default=0)

    def lay_out_again(self) -> None:
        """Make the rows anew for the width there is; a pane that is not on screen keeps its last one."""
        if self.is_mounted and self.text_selection is not None:
            self.screen.clear_selection()
        self._laid_out_width = self.room.width or self._laid_out_width or WIDTH_UNSEEN
        self.lay_out(self._laid_out_width)
        self.rows_changed()

    def rows_changed(self, first: int = 0) -> None:
        """Fit the scrolling to the rows, of which those from `first` on are others, and follow their end if wanted."""
        wide = self.widest() if self.styles.overflow_x == "auto" else 0
        self._take_size(Size(max(wide, self._laid_out_width), self.row_count))
        self._follow()
        above = first - self.scroll_offset.y
        if above <= 0:
            self.refresh()
        elif above < self.size.height:
            self.refresh(Region(0, above, self.size.width, self.size.height - above))

    def _take_size(self, size: Size) -> None:
        """Take the size of all rows; only where it is the pane's size too, the whole screen is laid out for it."""
        if not self.container_size or self.styles.auto_dimensions:
            self.virtual_size = size
        elif size != self.virtual_size:
            self.set_reactive(RowList.virtual_size, size)
            self._scroll_update(size)

    def _follow(self) -> None:
        """Go to the end if the user was there; once more when the sizes are settled."""
        if self.follows and self._at_end:
            self.scroll_to(y=self.row_count, animate=False)
            self._at_end = True
            self.call_after_refresh(self._settle)

    def _settle(self) -> None:
        if self.follows and self._at_end:
            self.scroll_to(y=self.row_count, animate=False)

    def on_resize(self) -> None:
        """Lay out for another width; stay at the end if that is where we were."""
        if self.room.width not in (0, self._laid_out_width):
            self.lay_out_again()
        else:
            self._follow()

    def on_show(self) -> None:
        """Catch up with the room there is now."""
        self.on_resize()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value >= min(self.max_scroll_y, self.row_count - self.room.height):
            self._at_end = True
        elif new_value < old_value:
            self._at_end = False

    def row_shown(self, row: Row, left: int, width: int) -> None:
        """Hear that `width` cells of a row are being drawn, from cell `left` on."""

    def render_line(self, y: int) -> Strip:
        """Return one line of the pane."""
        x, top = self.scroll_offset
        width = self.room.width
        number = top + y
        if self._base is None:
            self._base = self.rich_style
        base = self._base
        if not 0 <= number < self.row_count:
            return Strip.blank(width, base)
        row = self.row_at(number)
        self.row_shown(row, x, width)
        spans = row.spans
        if row.item >= 0 and row.item == self.cursor:
            base += self._tones[CURSOR if self.has_focus else CURSOR_BLURRED]
            if self.has_focus and not self._tones.mixes:  # each colour would be another patch in what is reversed
                spans = tuple((text, self._style(tone).without_color) for text, tone in spans)
        fill = base if row.fill is None else base + self._style(row.fill)
        strip = Strip([Segment(text, fill + self._style(tone)) for text, tone in spans])
        cells = strip.cell_length
        shown = strip.crop_extend(x, x + width, fill)
        if cells > x + width:
            mark = Strip([Segment("›", fill + self._style(Tone.KEY))])
            shown = Strip.join([shown.crop(0, width - 1), mark])
        span = selection.get_span(number) if (selection := self.text_selection) is not None else None
        if span is None:
            return shown
        return with_selection(shown, span[0] - x, width if span[1] < 0 else span[1] - x, self._tones[SELECTED])

    def offset_at(self, x: int, y: int) -> Offset:
        """Return the cell and the row at a place of the screen."""
        return Offset(x, y) - self.content_region.offset + self.scroll_offset

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return what is selected, as it was written, and what stands behind it."""
        return selected_text(self.row_at, self.row_count, selection), "\n"

    def text_here(self) -> str:
        """Return what the cursor is on, as it was written; without a cursor all there is."""
        return selected_text(self.row_at, self.row_count, SELECT_ALL)

    def action_copy(self) -> None:
        """Copy what the mouse selected, else what the cursor is on."""
        chosen = self.screen.get_selected_text()
        self.screen.clear_selection()
        self.post_message(self.Copied(chosen or self.text_here()))

    def _style(self, tone: Tone | Style) -> Style:
        return tone if isinstance(tone, Style) else self._tones[tone]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tones.clear()
        self._base = None

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
