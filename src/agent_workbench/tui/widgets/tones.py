"""Tones as styles: what the style sheets say of a part of a widget, with see-through colours mixed already."""

from rich.style import Style
from textual.widget import Widget


class Tones(dict[str, Style]):
    """The styles of a widget's parts by name, found when first asked for; to be cleared when its styles change.

    A part without a background of its own has none, so that it can stand on any.
    """

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self._widget = widget

    def __missing__(self, name: str) -> Style:
        styles = self._widget.get_component_styles(name)
        behind = self._widget.background_colors[1]
        own = behind + styles.background
        color = own + styles.color
        text = styles.text_style
        style = Style(
            color=color.rich_color,
            bgcolor=own.rich_color if styles.background.a else None,
            bold=text.bold,
            italic=text.italic,
            underline=text.underline,
        )
        self[name] = style
        return style
