"""Strip of session tabs, each with its task and state. A click goes to one."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.tui.widgets.tab_strip import FRONT, OTHER
from agent_workbench.tui.widgets.tones import Tones
from agent_workbench.views.session_tabs import PlacedTab, TabView, lay_out_tabs


class SessionStrip(Widget):
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
        self._tones = Tones(self)
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

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tones.clear()

    def on_click(self, event: events.Click) -> None:
        """Go to the clicked session."""
        for placed in self._placed:
            if placed.start <= event.x < placed.end:
                self.post_message(self.Chosen(placed.number))
