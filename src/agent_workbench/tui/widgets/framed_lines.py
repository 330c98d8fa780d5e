"""Rendered lines of a widget with its border and padding around them."""

from typing import Any

from textual._styles_cache import RenderLineCallback, StylesCache
from textual.cache import FIFOCache
from textual.color import Color
from textual.css.styles import StylesBase
from textual.geometry import Region, Size, Spacing
from textual.strip import Strip
from textual.widget import Widget

MOST_LINES = 512
"""Lines that are kept: several screens, so that scrolling back and forth renders none twice."""


class FramedLines(StylesCache):
    """Textual's line cache of a widget, by content: a line that moves on the screen is not rendered again.

    A line with the same content must be the same `Strip`, as `RowPainter` returns it. Textual filters, cuts and writes
    a strip once, so a pane that scrolls costs little more than its new lines.
    """

    def __init__(self) -> None:
        super().__init__()
        self._framed: FIFOCache[int, tuple[Strip, Strip]] = FIFOCache(MOST_LINES)
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
        gutter = styles.gutter
        if not gutter.top <= y < size.height - gutter.bottom:
            return super().render_line(
                styles,
                y,
                size,
                content_size,
                padding,
                base_background,
                background,
                render_content_line,
                *others,
            )
        line = render_content_line(y - gutter.top)
        known = self._framed.get(id(line))
        if known is not None and known[0] is line:
            return known[1]
        framed = super().render_line(
            styles,
            y,
            size,
            content_size,
            padding,
            base_background,
            background,
            lambda _: line,
            *others,
        )
        self._framed[id(line)] = (line, framed)
        return framed
