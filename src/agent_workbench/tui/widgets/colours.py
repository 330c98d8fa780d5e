"""Colours: tones mixed from the theme, syntax highlighting, and marks on search words in code."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from rich.style import Style
from textual.color import BLACK, WHITE, Color
from textual.widget import Widget

from agent_workbench.tui.widgets.rows import Span
from agent_workbench.views.blocks import Tone

Lines = list[list[Span]]


def plain_lines(text: str) -> Lines:
    """Return the lines of `text` without colours."""
    return [[(line, Tone.PLAIN)] for line in text.split("\n")]


def coloured_lines(path: str, text: str, dark: bool, language: str = "") -> Lines:
    """Return the highlighted lines of `text`; the first call loads lexers and is slow, so run it in a thread.

    The language is guessed from the path if it is not given.
    """
    from rich.console import Console
    from rich.syntax import Syntax

    lexer = language or Syntax.guess_lexer(path, text)
    code = Syntax(text, lexer, theme="monokai" if dark else "friendly", background_color="default").highlight(text)
    console = Console(width=10, force_terminal=False)
    code.rstrip()
    return [
        [(segment.text, _foreground(segment.style)) for segment in line.render(console) if segment.text]
        for line in code.split("\n", allow_blank=True)
    ]


def mark_words(lines: Lines, words: Sequence[str]) -> Lines:
    """Return the lines with every occurrence of the words marked, in any case, also inside of longer words."""
    wanted = sorted({word for word in words if word.strip()}, key=len, reverse=True)
    if not wanted:
        return lines
    pattern = re.compile("|".join(map(re.escape, wanted)), re.IGNORECASE)
    return [_marked(line, pattern) for line in lines]


def _marked(line: list[Span], pattern: re.Pattern[str]) -> list[Span]:
    text = "".join(each for each, _ in line)
    hits = [found.span() for found in pattern.finditer(text)]
    if not hits:
        return line
    marked: list[Span] = []
    at = 0
    for piece, look in line:
        end = at + len(piece)
        cuts = sorted({at, end, *(min(max(place, at), end) for hit in hits for place in hit)})
        for start, stop in pairwise(cuts):
            hit = any(first <= start < last for first, last in hits)
            marked.append((text[start:stop], Tone.HIT if hit else look))
        at = end
    return marked


def _foreground(style: Style | None) -> Style:
    return Style() if style is None else Style(color=style.color, bold=style.bold, italic=style.italic)


class ThemeStyle(Struct, frozen=True):
    """Style in terms of a theme: variables for text and background with their shares in percent, and attributes."""

    text: str = "foreground"
    text_percent: int = 100
    bold: bool = False
    behind: str = ""
    behind_percent: int = 100
    struck: bool = False
    italic: bool = False


LOOKS = {
    Tone.PLAIN: ThemeStyle(),
    Tone.DIM: ThemeStyle(text_percent=62),
    Tone.STRONG: ThemeStyle(bold=True),
    Tone.TITLE: ThemeStyle("text-primary", bold=True),
    Tone.ACCENT: ThemeStyle("text-accent", bold=True),
    Tone.GOOD: ThemeStyle("text-success"),
    Tone.BAD: ThemeStyle("text-error"),
    Tone.WARN: ThemeStyle("text-warning"),
    Tone.ADDED: ThemeStyle(behind="success", behind_percent=18),
    Tone.REMOVED: ThemeStyle(behind="error", behind_percent=20),
    Tone.ADDED_WORD: ThemeStyle(bold=True, behind="success", behind_percent=42),
    Tone.REMOVED_WORD: ThemeStyle(bold=True, behind="error", behind_percent=45),
    Tone.HUNK: ThemeStyle("text-secondary"),
    Tone.FILE: ThemeStyle(bold=True),
    Tone.NUMBER: ThemeStyle(text_percent=38),
    Tone.KEY: ThemeStyle("text-accent"),
    Tone.RULE: ThemeStyle(text_percent=22),
    Tone.GONE: ThemeStyle(text_percent=62, struck=True),
    Tone.CODE: ThemeStyle("text-accent"),
    Tone.EMPHASIS: ThemeStyle(italic=True),
    Tone.HIT: ThemeStyle(bold=True, behind="warning", behind_percent=35),
}
CURSOR = ThemeStyle(behind="primary", behind_percent=28)
CURSOR_BLURRED = ThemeStyle(behind="foreground", behind_percent=7)
SELECTED = ThemeStyle(behind="primary", behind_percent=60)


LEAST_CONTRAST = 4.5
"""Contrast that WCAG level AA asks of text; a theme can ask for more by a variable `least-contrast`."""
MARKED_WORDS = frozenset({LOOKS[Tone.ADDED_WORD], LOOKS[Tone.REMOVED_WORD], LOOKS[Tone.HIT]})
NO_TEXT = frozenset({LOOKS[Tone.RULE]})
COARSE_PERCENT = 150
"""Strength of the background of marked words with 256 colours, which would else be rounded to that of their line."""


def contrast(one: Color, other: Color) -> float:
    """Return WCAG's contrast ratio of two colours, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def mixed(
    look: ThemeStyle, variables: Mapping[str, str], own: Color, *, coarse: bool = False
) -> tuple[Color, Color | None]:
    """Return the colours of a look's text and of its background (None for the widget's own, `own`).

    `variables` are a theme's; `coarse` means 256 colours. Text is always mixed strongly enough to be read, also under
    the cursor.
    """
    least = float(variables.get("least-contrast", LEAST_CONTRAST))
    behind, cursor = (_behind(each, variables, own, least, coarse=coarse) for each in (look, CURSOR))
    text = behind.blend(Color.parse(variables[look.text]), look.text_percent / 100)
    if look not in NO_TEXT:
        text = _legible(text, (behind,) if look.behind else (own, cursor), least)
    return text, behind if look.behind else None


def _behind(look: ThemeStyle, variables: Mapping[str, str], own: Color, least: float, *, coarse: bool) -> Color:
    """Return the background, weakened until text on it can be read."""
    if not look.behind:
        return own
    percent = look.behind_percent * (COARSE_PERCENT / 100 if coarse and look in MARKED_WORDS else 1)
    tries = [own.blend(Color.parse(variables[look.behind]), percent * part / 1000) for part in range(10, 4, -1)]
    return next((each for each in tries if max(contrast(each, pole) for pole in (BLACK, WHITE)) >= least), tries[-1])


def _legible(text: Color, grounds: tuple[Color, ...], least: float) -> Color:
    """Return the colour of the text, moved towards black or white until it stands out from all backgrounds."""
    pole = max((BLACK, WHITE), key=lambda each: min(contrast(each, ground) for ground in grounds))
    tries = (text.blend(pole, tenth / 10) for tenth in range(10))
    return next((each for each in tries if all(contrast(each, ground) >= least for ground in grounds)), pole)


class Tones(dict[Tone | ThemeStyle, Style]):
    """Looks as styles on a widget's background. Clear it when the styles of the widget change."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self._widget = widget

    @property
    def mixes(self) -> bool:
        """True if colours can be mixed: not with the terminal's own 16."""
        return self._color("foreground").ansi is None

    def __missing__(self, tone: Tone | ThemeStyle) -> Style:
        look = LOOKS[tone] if isinstance(tone, Tone) else tone
        text = self._color(look.text)
        style = self._unmixed(look) if text.ansi is not None else self._mixed(look)
        self[tone] = style
        return style

    def _color(self, variable: str) -> Color:
        return Color.parse(self._widget.app.theme_variables[variable])

    def _mixed(self, look: ThemeStyle) -> Style:
        app, own = self._widget.app, self._widget.background_colors[1]
        coarse = app.console.color_system == "256" and not app.is_headless
        text, behind = mixed(look, app.theme_variables, own, coarse=coarse)
        return Style(
            color=text.rich_color,
            bgcolor=behind.rich_color if behind is not None else None,
            bold=look.bold or None,
            strike=look.struck or None,
            italic=look.italic or None,
        )

    def _unmixed(self, look: ThemeStyle) -> Style:
        """Return a look in the terminal's own colours, which cannot be mixed: dim, reversed, or coloured text."""
        if not look.behind:
            dim = look.text_percent < 100 or None
            color, struck = self._color(look.text).rich_color, look.struck or None
            italic = look.italic or None
            return Style(color=color, dim=dim, bold=look.bold or None, strike=struck, italic=italic)
        color = self._color(look.behind).rich_color
        reverse = look.behind_percent == 100 or look in (CURSOR, SELECTED) or None
        bold = look.bold or look == CURSOR_BLURRED or None
        return Style(color=color, reverse=reverse, underline=look in MARKED_WORDS or None, bold=bold)


class TonedWidget(Widget):
    """Widget that is drawn in tones; they are mixed again when its styles change."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._tones = Tones(self)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tones.clear()
