"""Bar at the bottom: a headline, and a line of key hints that can be clicked."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.colours import ThemeStyle, TonedWidget
from agent_workbench.tui.widgets.rows import Span, keep_lines, wrap
from agent_workbench.views.blocks import Tone

SEPARATOR = " │ "

INDENT = 1


class Hint(Struct, frozen=True):
    """A key hint: the key's name (empty if the label is all), a label, and the action of a click.

    A hint that is `kept` has its place also where others do not fit.
    """

    key: str
    label: str
    action: str
    kept: bool = False

    @property
    def cells(self) -> int:
        """Width of the hint."""
        return cell_len(self.label) + (cell_len(self.key) + 2 if self.key else 0)


class PlacedHint(Struct, frozen=True):
    """A hint at the cells from `start` to before `end`."""

    hint: Hint
    start: int
    end: int


def place_hints(hints: Iterable[Hint], start: int, width: int, gap: int = len(SEPARATOR)) -> list[PlacedHint]:
    """Return the hints side by side from cell `start`: the first ones that fit into `width` cells, and those kept."""
    hints = list(hints)
    placed: list[PlacedHint] = []
    at, full = start, False
    for index, hint in enumerate(hints):
        reserved = sum(gap + each.cells for each in hints[index + 1 :] if each.kept)
        full = full or at + hint.cells + (0 if hint.kept else reserved) > width
        if (hint.kept or not full) and at + hint.cells <= width:
            placed.append(PlacedHint(hint, at, at + hint.cells))
            at += hint.cells + gap
    return placed


def hint_line(hints: Iterable[tuple[str, str]]) -> str:
    """Return keys and their labels as the line of a dialog, written as in the bar."""
    return SEPARATOR.join(f"{label}: {key}" for key, label in hints)


def hint_at(placed: Sequence[PlacedHint], cell: int) -> Hint | None:
    """Return the hint at a cell, None if there is none."""
    return next((each.hint for each in placed if each.start <= cell < each.end), None)


class Bar(TonedWidget, can_focus=True):
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
