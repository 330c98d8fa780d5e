"""App with our style sheets, themes or the terminal's colours, and a clipboard."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual.driver import Driver
from textual.filter import LineFilter, NoColor
from textual.theme import Theme

from agent_workbench.tui.key_queue import KeyQueueApp
from agent_workbench.tui.terminal_driver import ControlGuard, ServedDriver, TerminalDriver

if TYPE_CHECKING:
    from agent_workbench.tui.widgets.row_list import Copied


Result = TypeVar("Result")
SAID_SECONDS = 3.0
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
MOST_COPIED_BYTES = 64 * 1024
"""Largest text for a terminal's clipboard: some terminals silently drop all of a longer one."""

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

FOLDER = Path(__file__).parent
STYLES = tuple(
    FOLDER / name
    for name in (
        "app.tcss",
        "panes/workbench_screen.tcss",
        "widgets/rows.tcss",
        "widgets/bar.tcss",
        "widgets/status_line.tcss",
        "widgets/tab_strip.tcss",
        "widgets/session_strip.tcss",
    )
)
DIALOG_STYLES = (FOLDER / "screens/dialog.tcss",)


class TerminalApp(KeyQueueApp[Result]):
    """App with our themes: without colours under `NO_COLOR`, with the terminal's own if it has 16.

    `clipboard_allowed`: copied text is also sent to the terminal (OSC 52), which may keep it in a clipboard.
    `terminal_focused` is None until the terminal reports its focus. `served`: the terminal is a browser.
    """

    clipboard_allowed = True

    def __init__(self, *, served: bool = False) -> None:
        super().__init__(_driver(served=served))
        self.terminal_focused: bool | None = None
        # One list for all calls: Textual caches lines by the filter that they went through.
        self._last_filters = [NoColor(), ControlGuard()] if self.no_color else [ControlGuard()]
        for theme in OWN_THEMES:
            self.register_theme(theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters followed by ours."""
        return [*super().get_line_filters(), *self._last_filters]

    def choose_theme(self, name: str) -> bool:
        """Show a theme, or the closest that the terminal can show; return False if there is no such theme."""
        known = self.get_theme(name)
        if known is None:
            return False
        if self.no_color:
            self.theme = OWN_COLOURS[True]
        else:
            self.theme = name if self.is_headless else shown_theme(known, self.console.color_system)
        return True

    def copy_to_clipboard(self, text: str) -> None:
        """Keep text for pasting in the app, send it to the terminal if allowed and not too long, and tell the user."""
        text = CONTROLS.sub("", text)
        if not text.strip():
            self._say("there is nothing here to copy")
            return
        lines = text.count("\n") + 1
        copied = f"copied {lines:,} lines" if lines > 1 else "copied a line"
        if not self.clipboard_allowed:
            self._say(f"{copied}, to be pasted here only: ui.clipboard is false")
        elif len(text.encode()) > MOST_COPIED_BYTES:
            self._say(f"{copied}, to be pasted here only: that is too much for a terminal")
        else:
            super().copy_to_clipboard(text)
            self._say(copied)
            return
        self._clipboard = text

    def on_row_list_copied(self, message: "Copied") -> None:
        self.copy_to_clipboard(message.text)

    @property
    def terminal_stuck(self) -> bool:
        """True if the terminal took nothing of what was written last: who writes to it waits without end."""
        return bool(getattr(self._driver, "stuck", False))

    def write_control(self, sequence: str) -> None:
        """Send a control sequence that is no part of the screen to the terminal."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def on_app_focus(self) -> None:
        self.terminal_focused = True

    def on_app_blur(self) -> None:
        self.terminal_focused = False

    def _fatal_error(self) -> None:
        """End with a traceback as Textual does, but without values: those of a long session take minutes to print."""
        from rich.segment import Segments
        from rich.traceback import Traceback

        self.bell()
        rendered = self.console.render(Traceback(width=None), self.console.options)
        self._exit_renderables.append(Segments(rendered))
        self._close_messages_no_wait()

    def _say(self, text: str) -> None:
        self.notify(text, timeout=SAID_SECONDS, markup=False)


def _driver(*, served: bool) -> type[Driver]:
    if served:
        return ServedDriver

    return TerminalDriver


def shown_theme(theme: Theme, colours: str | None) -> str:
    """Return the theme to show for `theme` in a terminal with these `colours` (Rich's names; None: no colours).

    With 16 colours, the terminal's own themes are better than mixed colours rounded to the nearest.
    """
    return theme.name if colours in ("256", "truecolor", "windows") or theme.ansi else OWN_COLOURS[theme.dark]
