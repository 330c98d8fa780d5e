"""What a terminal can do for an app of ours: show colours, as many as it has, and keep what is copied."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from textual.driver import Driver
from textual.filter import LineFilter, NoColor

from agent_workbench.tui.terminal.control_guard import ControlGuard
from agent_workbench.tui.terminal.key_queue import KeyQueueApp
from agent_workbench.tui.terminal.themes import OWN_COLOURS, OWN_THEMES, shown_theme

if TYPE_CHECKING:
    from agent_workbench.tui.widgets.row_list import Copied

Result = TypeVar("Result")
SAID_SECONDS = 3.0
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
MOST_COPIED_BYTES = 64 * 1024
"""What a terminal takes at once: some drop all of what is longer, and say nothing."""


class TerminalApp(KeyQueueApp[Result]):
    """Knows our themes. Without colours (`NO_COLOR`) it shows none, with 16 it shows the terminal's own.

    `clipboard_allowed`: what is copied goes to the terminal too (OSC 52), which may put it into the system's clipboard.
    """

    clipboard_allowed = True

    def __init__(self, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class)
        # One for all: what a line became is kept by the filter that it went through.
        self._last_filters = [NoColor(), ControlGuard()] if self.no_color else [ControlGuard()]
        for theme in OWN_THEMES:
            self.register_theme(theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters with ours behind them."""
        return [*super().get_line_filters(), *self._last_filters]

    def choose_theme(self, name: str) -> bool:
        """Show this theme, or what the terminal has in its place; return whether there is such a theme."""
        known = self.get_theme(name)
        if known is None:
            return False
        if self.no_color:
            self.theme = OWN_COLOURS[True]
        else:
            self.theme = name if self.is_headless else shown_theme(known, self.console.color_system)
        return True

    def copy_to_clipboard(self, text: str) -> None:
        """Keep text to be pasted here, give it to the terminal where that is allowed and not too long, and say so."""
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

    def _fatal_error(self) -> None:
        """End with a traceback, as Textual does, but without values: those of a long session take minutes to print."""
        from rich.segment import Segments
        from rich.traceback import Traceback

        self.bell()
        rendered = self.console.render(Traceback(width=None), self.console.options)
        self._exit_renderables.append(Segments(rendered))
        self._close_messages_no_wait()

    def _say(self, text: str) -> None:
        self.notify(text, timeout=SAID_SECONDS, markup=False)
