"""How each tone looks: a variable of the theme, mixed with the background it stands on."""

from dataclasses import dataclass

from rich.style import Style
from textual.color import Color
from textual.widget import Widget

from agent_workbench.core.views.tones import Tone


@dataclass(frozen=True, slots=True)
class Look:
    """A theme's variable for the text and how much of it (percent), bold or struck out; one for what is behind it."""

    text: str = "foreground"
    text_percent: int = 100
    bold: bool = False
    behind: str = ""
    behind_percent: int = 100
    struck: bool = False


LOOKS = {
    Tone.PLAIN: Look(),
    Tone.DIM: Look(text_percent=62),
    Tone.STRONG: Look(bold=True),
    Tone.TITLE: Look("text-primary", bold=True),
    Tone.ACCENT: Look("text-accent", bold=True),
    Tone.GOOD: Look("text-success"),
    Tone.BAD: Look("text-error"),
    Tone.WARN: Look("text-warning"),
    Tone.ADDED: Look(behind="success", behind_percent=18),
    Tone.REMOVED: Look(behind="error", behind_percent=20),
    Tone.ADDED_WORD: Look(bold=True, behind="success", behind_percent=42),
    Tone.REMOVED_WORD: Look(bold=True, behind="error", behind_percent=45),
    Tone.HUNK: Look("text-secondary"),
    Tone.FILE: Look(bold=True),
    Tone.NUMBER: Look(text_percent=38),
    Tone.KEY: Look("text-accent"),
    Tone.RULE: Look(text_percent=22),
    Tone.GONE: Look(text_percent=62, struck=True),
    Tone.HIT: Look(bold=True, behind="warning", behind_percent=35),
}
CURSOR = Look(behind="primary", behind_percent=28)
CURSOR_BLURRED = Look(behind="foreground", behind_percent=7)


class Tones(dict[Tone | Look, Style]):
    """Looks as styles on a widget's background; to be cleared when its styles change."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self._widget = widget

    @property
    def mixes(self) -> bool:
        """True where colours can be mixed: not with those of the terminal itself."""
        return self._color("foreground").ansi is None

    def __missing__(self, tone: Tone | Look) -> Style:
        look = LOOKS[tone] if isinstance(tone, Tone) else tone
        text = self._color(look.text)
        style = self._unmixed(look) if text.ansi is not None else self._mixed(look, text)
        self[tone] = style
        return style

    def _color(self, variable: str) -> Color:
        return Color.parse(self._widget.app.theme_variables[variable])

    def _mixed(self, look: Look, text: Color) -> Style:
        own = self._widget.background_colors[1]
        if look.behind:
            own = own.blend(self._color(look.behind), look.behind_percent / 100)
        return Style(
            color=own.blend(text, look.text_percent / 100).rich_color,
            bgcolor=own.rich_color if look.behind else None,
            bold=look.bold or None,
            strike=look.struck or None,
        )

    def _unmixed(self, look: Look) -> Style:
        """Return a look in the terminal's own colours, which cannot be mixed: dim, reversed, or coloured text."""
        if not look.behind:
            dim = look.text_percent < 100 or None
            color, struck = self._color(look.text).rich_color, look.struck or None
            return Style(color=color, dim=dim, bold=look.bold or None, strike=struck)
        color = self._color(look.behind).rich_color
        reverse = look.behind_percent == 100 or look == CURSOR or None
        return Style(color=color, reverse=reverse, bold=look.bold or None)
