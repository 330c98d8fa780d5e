"""Strip of pane names, where only one pane has room. A click goes to one."""

from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.tui.widgets.bar import Hint, PlacedHint, hint_at, place_hints
from agent_workbench.tui.widgets.tones import ThemeStyle, Tones

FRONT = ThemeStyle("background", bold=True, behind="primary")
OTHER = ThemeStyle(text_percent=70)


class TabStrip(Widget):
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
        self._tones = Tones(self)

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

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tones.clear()

    def on_click(self, event: events.Click) -> None:
        """Go to the clicked pane."""
        hint = hint_at(self._placed, event.x)
        if hint is not None:
            self.post_message(self.Chosen(hint.action))
