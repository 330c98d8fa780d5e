"""Bar at the bottom: a headline, and a line of key hints that can be clicked."""

from abc import abstractmethod

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.tui.bars.hints import SEPARATOR, Hint, PlacedHint, hint_at, place_hints
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.framed_lines import keep_lines
from agent_workbench.tui.widgets.rows import Span, wrap
from agent_workbench.tui.widgets.tones import ThemeStyle, Tones
from agent_workbench.views.blocks import Tone

INDENT = 1


class Bar(Widget, can_focus=True):
    """A few lines. It remembers the time and number of keys and clicks, and forwards scrolling to a pane."""

    scope: Scope

    class Scroll(Message):
        """The pane that belongs to the bar scrolls."""

        def __init__(self, action: str) -> None:
            self.action = action
            super().__init__()

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.pressed_at: float | None = None
        self.presses = 0
        self.remark = ""
        self._tones = Tones(self)
        keep_lines(self)
        self._placed: list[PlacedHint] = []

    @abstractmethod
    def badge(self) -> str:
        """Word at the beginning of the headline."""

    def badge_color(self) -> str:
        """Theme variable of the colour behind the badge."""
        return "primary"

    @abstractmethod
    def headline(self) -> tuple[list[Span], list[Span]]:
        """Text after the badge, and text at the right end."""

    def more(self) -> str:
        """Text between the headline and the hints, in as many lines as it takes if the bar is higher."""
        return ""

    @abstractmethod
    def hints(self) -> list[Hint]:
        """Hints for the keys that work now."""

    @abstractmethod
    def stop(self) -> None:
        """Stop what the bar is about, if it runs."""

    def remark_on(self, text: str) -> None:
        """Show a remark in the bar until the next key."""
        self.remark = text
        self.refresh()

    def painted(self) -> None:
        """Hook: the bar is drawn."""

    def render_line(self, y: int) -> Strip:
        """Return a line of the bar: the headline, details, or the hints in the last one."""
        width, height = self.size
        if y == 0:
            self.painted()
            return self._headline(width)
        if y == height - 1:
            return self._hint_line(width)
        rest = list(wrap(self.more(), width - INDENT))[y - 1 :]
        # The last line that fits shows that there is more.
        said = " ".join(rest[:1] if y < height - 2 else rest)
        more = Strip([Segment(" " * INDENT, self.rich_style), *self._segments([(said, Tone.WARN)])])
        return cut(more, width, self.rich_style)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines: headline, details and hints."""
        return 2 + len(list(wrap(self.more(), width - INDENT)))

    def _headline(self, width: int) -> Strip:
        left, right = self.headline()
        if self.remark:
            right = [(self.remark, Tone.WARN)]
        look = ThemeStyle("background", bold=True, behind=self.badge_color())
        badge = Segment(f" {self.badge()} ", self._tones[look])
        right_cells = min(sum(cell_len(text) for text, _ in right), width // 2 if not self.remark else width - 12)
        room = width - INDENT - cell_len(badge.text) - right_cells - 3
        segments = [Segment(" " * INDENT, self.rich_style), badge, Segment(" ", self.rich_style)]
        cells = INDENT + cell_len(badge.text) + 1 + max(0, room)
        kept = cut(Strip([*segments, *self._segments(left)]), cells, self.rich_style)
        end = cut(Strip(self._segments(right)), right_cells, self.rich_style)
        return Strip.join([kept, Strip.blank(1, self.rich_style), end]).adjust_cell_length(width, self.rich_style)

    def _hint_line(self, width: int) -> Strip:
        self._placed = place_hints(self.hints(), INDENT, width)
        spans: list[Span] = []
        for placed in self._placed:
            before = SEPARATOR if spans else " " * INDENT
            spans += [(before, Tone.RULE), (f"{placed.hint.label}: ", Tone.DIM), (placed.hint.key, Tone.KEY)]
        return Strip(self._segments(spans)).adjust_cell_length(width, self.rich_style)

    def _segments(self, spans: list[Span]) -> list[Segment]:
        return [
            Segment(text, self.rich_style + (tone if isinstance(tone, Style) else self._tones[tone]))
            for text, tone in spans
        ]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tones.clear()

    def on_key(self, event: events.Key) -> None:
        """Remember when the key was pressed; Textual looks up bindings after this."""
        self.pressed_at, self.presses = event.time, self.presses + 1
        if self.remark:
            self.remark_on("")

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the clicked hint."""
        offset = event.get_content_offset(self)
        hint = hint_at(self._placed, offset.x) if offset is not None and offset.y == self.size.height - 1 else None
        if hint is not None and hint.action:
            self.pressed_at, self.presses = event.time, self.presses + 1
            await self.run_action(hint.action)

    def action_copy(self) -> None:
        self.post_message(self.Scroll("copy"))

    def action_line_down(self) -> None:
        self.post_message(self.Scroll("line_down"))

    def action_line_up(self) -> None:
        self.post_message(self.Scroll("line_up"))

    def action_page_down(self) -> None:
        self.post_message(self.Scroll("page_down"))

    def action_page_up(self) -> None:
        self.post_message(self.Scroll("page_up"))

    def action_to_top(self) -> None:
        self.post_message(self.Scroll("to_top"))

    def action_to_bottom(self) -> None:
        self.post_message(self.Scroll("to_bottom"))


def cut(strip: Strip, width: int, style: Style) -> Strip:
    """Return the strip in `width` cells; an ellipsis marks a cut."""
    if strip.cell_length <= width:
        return strip.adjust_cell_length(width, style)
    last = strip.crop(0, max(0, width - 1))
    return Strip.join([last, Strip([Segment(set_cell_size("…", min(1, width)), style)])])
