"""Last filter before the terminal: no control code and no hyperlink passes."""

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from agent_workbench.core.text.sanitizer import without_controls


class ControlGuard(LineFilter):
    """Removes control codes from every line that is written, and links from its styles."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without anything that controls a terminal."""
        if all(_harmless(segment) for segment in segments):
            return segments
        return [Segment(without_controls(text), _unlinked(style)) for text, style, _ in segments]


def _harmless(segment: Segment) -> bool:
    text, style, control = segment
    return text.isprintable() and control is None and (style is None or style.link is None)


def _unlinked(style: Style | None) -> Style | None:
    return style if style is None or style.link is None else style.update_link(None)
