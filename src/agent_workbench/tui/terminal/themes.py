"""Our own themes, and the choice of a theme that a terminal can show."""

from textual.theme import Theme

HIGH_CONTRAST = Theme(
    name="high-contrast",
    primary="#4DB8FF",
    secondary="#9AD0FF",
    accent="#FFD84D",
    warning="#FFC400",
    error="#FF7A7A",
    success="#5CFF7A",
    foreground="#FFFFFF",
    background="#000000",
    surface="#0A0A0A",
    panel="#1C1C1C",
    dark=True,
    variables={"least-contrast": "7"},
)
HIGH_CONTRAST_LIGHT = Theme(
    name="high-contrast-light",
    primary="#003C8F",
    secondary="#1F3A5F",
    accent="#5B1A8B",
    warning="#7A4100",
    error="#9B0000",
    success="#00521F",
    foreground="#000000",
    background="#FFFFFF",
    surface="#F6F6F6",
    panel="#E6E6E6",
    dark=False,
    variables={"least-contrast": "7"},
)
OWN_THEMES = (HIGH_CONTRAST, HIGH_CONTRAST_LIGHT)
OWN_COLOURS = {True: "ansi-dark", False: "ansi-light"}
"""Themes in the terminal's own 16 colours: dark and light."""


def shown_theme(theme: Theme, colours: str | None) -> str:
    """Return the theme to show for `theme` in a terminal with these `colours` (Rich's names; None: no colours).

    With 16 colours, the terminal's own themes are better than mixed colours rounded to the nearest.
    """
    return theme.name if colours in ("256", "truecolor", "windows") or theme.ansi else OWN_COLOURS[theme.dark]
