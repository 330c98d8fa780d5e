"""Status line: as many figures as fit, the important ones first."""

from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from agent_workbench.tui.widgets.tones import Tones
from agent_workbench.views.blocks import Tone
from agent_workbench.views.status import Figure, StatusView

SEPARATOR = " │ "
WIDE_CELLS = 100


class StatusLine(Widget):
    """Shows a `StatusView` in one line."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._tones = Tones(self)
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

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tones.clear()

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
