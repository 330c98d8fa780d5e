"""Strips of one line: names of the panes, tabs of the sessions, and the figures of the status line."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from agent_workbench.tui.widgets.bar import Hint, PlacedHint, hint_at, place_hints
from agent_workbench.tui.widgets.colours import ThemeStyle, TonedWidget
from agent_workbench.views.blocks import Tone
from agent_workbench.views.sessions import PlacedTab, TabView, lay_out_tabs
from agent_workbench.views.status import Figure, StatusView

FRONT = ThemeStyle("background", bold=True, behind="primary")
OTHER = ThemeStyle(text_percent=70)

SEPARATOR = " │ "
WIDE_CELLS = 100


class TabStrip(TonedWidget):
    """Shows the names of the panes, the front one marked."""

    @dataclass
    class Chosen(Message):
        """A pane was clicked."""

        pane: str

    def __init__(self, panes: tuple[tuple[str, str, str], ...]) -> None:
        """Take the id, key and name of each pane."""
        super().__init__(id="tabs")
        self._hints = [Hint("", f"{key} {name}", pane) for pane, key, name in panes]
        self._placed: list[PlacedHint] = []
        self._front = ""
        self._shown: tuple[str, ...] = ()

    def show(self, front: str, shown: tuple[str, ...]) -> None:
        """Show the names of these panes, and mark the one in front."""
        self._front, self._shown = front, shown
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.size.width
        hints = [hint for hint in self._hints if hint.action in self._shown]
        self._placed = place_hints(hints, 2, width, gap=3)
        segments: list[Segment] = []
        at = 0
        for placed in self._placed:
            look = FRONT if placed.hint.action == self._front else OTHER
            style = self.rich_style + self._tones[look]
            segments.append(Segment(" " * (placed.start - 1 - at), self.rich_style))
            segments.append(Segment(f" {placed.hint.label} ", style))
            at = placed.end + 1
        return Strip(segments).adjust_cell_length(width, self.rich_style) if y == 0 else Strip.blank(width)

    def on_click(self, event: events.Click) -> None:
        """Go to the clicked pane."""
        hint = hint_at(self._placed, event.x)
        if hint is not None:
            self.post_message(self.Chosen(hint.action))


class SessionStrip(TonedWidget):
    """Shows the sessions, the front one marked. It is hidden while there is only one."""

    @dataclass
    class Chosen(Message):
        """A session was clicked; `number` counts from 0."""

        number: int

    def __init__(self) -> None:
        super().__init__(id="sessions-line")
        self._tabs: tuple[TabView, ...] = ()
        self._front = 0
        self._placed: tuple[PlacedTab, ...] = ()
        self.display = False

    def show(self, tabs: Sequence[TabView], front: int) -> None:
        """Show these sessions and mark the one in front."""
        if (tuple(tabs), front) != (self._tabs, self._front):
            self._tabs, self._front = tuple(tabs), front
            self.display = len(tabs) > 1
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.size.width
        if y or not self._tabs:
            return Strip.blank(width, self.rich_style)
        self._placed = lay_out_tabs(self._tabs, self._front, width)
        segments: list[Segment] = []
        at = 0
        for placed in self._placed:
            segments.append(Segment(" " * (placed.start - at), self.rich_style))
            segments += self._written(placed)
            at = placed.end
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _written(self, placed: PlacedTab) -> list[Segment]:
        """Return a tab; a badge that calls for the user has its own colour unless the tab is in front."""
        tab, head = self._tabs[placed.number], placed.text[: placed.badge_at]
        if placed.number == self._front:
            return [Segment(placed.text, self.rich_style + self._tones[FRONT])]
        tone = tab.badge[1]
        return [
            Segment(head, self.rich_style + self._tones[OTHER]),
            Segment(placed.text[placed.badge_at :], self.rich_style + self._tones[tone]),
        ]

    def on_click(self, event: events.Click) -> None:
        """Go to the clicked session."""
        for placed in self._placed:
            if placed.start <= event.x < placed.end:
                self.post_message(self.Chosen(placed.number))


class StatusLine(TonedWidget):
    """Shows a `StatusView` in one line."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._view = StatusView(())

    def show(self, view: StatusView) -> None:
        """Show a view."""
        if view != self._view:
            self._view = view
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.size.width
        if y > 0:
            return Strip.blank(width, self.rich_style)
        segments = [Segment(" ", self.rich_style)]
        for number, figure in enumerate(fitting(self._view.figures, width - 2)):
            if number:
                segments.append(self._segment(SEPARATOR, Tone.RULE))
            segments.append(self._segment(figure.text, figure.tone))
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _segment(self, text: str, tone: Tone) -> Segment:
        return Segment(text, self.rich_style + self._tones[tone])


def fitting(figures: tuple[Figure, ...], width: int) -> list[Figure]:
    """Return the figures that fit, in their order; the least important are left out first.

    The width alone decides between long and short words, so that none changes when another figure comes or goes.
    """
    kept = [replace(each, text=each.short) if each.short and width < WIDE_CELLS else each for each in figures]
    while kept and _cells(kept) > width:
        ranks = [figure.rank for figure in kept]
        del kept[ranks.index(max(ranks))]
    return kept


def _cells(figures: list[Figure]) -> int:
    return sum(cell_len(figure.text) for figure in figures) + len(SEPARATOR) * max(0, len(figures) - 1)
