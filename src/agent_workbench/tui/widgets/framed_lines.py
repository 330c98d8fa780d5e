"""Rendered lines of a widget with its border and padding around them."""

from typing import Any

from rich.segment import Segment
from textual._styles_cache import RenderLineCallback, StylesCache
from textual.cache import FIFOCache
from textual.color import Color
from textual.css.styles import StylesBase
from textual.geometry import Region, Size, Spacing
from textual.strip import Strip
from textual.widget import Widget

MOST_LINES = 256
"""Lines that are kept: a few screens."""


class FramedLines(StylesCache):
    """Textual's line cache of a widget, by content: a line that moves on the screen is the same strip.

    Textual filters, cuts and writes a strip once, so a pane that scrolls costs little more than its new lines.
    """

    def __init__(self) -> None:
        super().__init__()
        self._framed: FIFOCache[tuple[Segment, ...], Strip] = FIFOCache(MOST_LINES)
        self._look: tuple[object, ...] = ()

    def render_widget(self, widget: Widget, crop: Region) -> list[Strip]:
        styles = widget.styles
        edges = (widget.region.width, styles.padding, styles.border, styles.outline)
        look = (*edges, *widget.background_colors, widget.opacity, styles.text_opacity, styles.tint)
        if look != self._look:
            self._framed.clear()
            self._look = look
        return super().render_widget(widget, crop)

    def render_line(
        self,
        styles: StylesBase,
        y: int,
        size: Size,
        content_size: Size,
        padding: Spacing,
        base_background: Color,
        background: Color,
        render_content_line: RenderLineCallback,
        *others: Any,
    ) -> Strip:
        def framed(content: RenderLineCallback) -> Strip:
            place = (styles, y, size, content_size, padding, base_background, background)
            return super(FramedLines, self).render_line(*place, content, *others)

        gutter = styles.gutter
        if not gutter.top <= y < size.height - gutter.bottom:
            return framed(render_content_line)
        line = render_content_line(y - gutter.top)
        key = tuple(line)
        known = self._framed.get(key)
        if known is None:
            known = self._framed[key] = framed(lambda _: line)
        return known


def keep_lines(*widgets: Widget) -> None:
    """Keep the rendered lines of these widgets by content from now on."""
    for widget in widgets:
        if not isinstance(widget._styles_cache, FramedLines):
            widget._styles_cache = FramedLines()
