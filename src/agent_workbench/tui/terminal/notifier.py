"""Calls the user who looks elsewhere: a bell, a notification of the terminal, one of the desktop."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.core.background import in_background
from agent_workbench.core.settings import CallBy, UiSettings
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.sessions.tabs import TabNotification, should_notify

if TYPE_CHECKING:
    from agent_workbench.tui.app import WorkbenchApp
    from agent_workbench.tui.session.session_tab import SessionTab

MOMENT_SECONDS = 1.0
"""So long something has to wait: what the policy lets through waits too, for a moment."""
TITLE = "Agent Workbench"


class Notifier:
    """Tells of each thing that waits once, in the `ways` the user wants, and never while they look on."""

    def __init__(self, app: "WorkbenchApp") -> None:
        self._app = app
        self._waiting: dict[str, TabNotification] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self.moment_seconds = MOMENT_SECONDS
        self.ways: tuple[CallBy, ...] = UiSettings().notify

    def heed(self, tab: "SessionTab", call: TabNotification | None) -> None:
        """Take note of what a tab calls for; nothing is a call as well."""
        key = call.key if call is not None else ""
        waiting = self._waiting.get(tab.mode)
        if call is None or key == tab.told:
            self._waiting.pop(tab.mode, None)
            tab.told = key
        elif waiting is None or waiting.key != key:
            self._waiting[tab.mode] = call
            self._app.set_timer(self.moment_seconds, lambda: self._tell(tab, call))

    def _tell(self, tab: "SessionTab", call: TabNotification) -> None:
        if self._waiting.get(tab.mode) != call:
            return
        del self._waiting[tab.mode]
        wanted = should_notify(call, tab.told, focused=self._app.terminal_focused, in_front=tab.in_front)
        tab.told = call.key
        if wanted:
            self._call(sanitize_line(call.text, 200))

    def _call(self, text: str) -> None:
        if CallBy.BELL in self.ways:
            self._app.bell()
        if CallBy.TERMINAL in self.ways:
            self._app.write_control(terminal_notification(text, in_tmux=self._app.around.in_tmux))
        desktop = self._app.around.desktop
        if CallBy.DESKTOP in self.ways and desktop is not None:
            task = in_background(desktop.notify(TITLE, text))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)


def terminal_notification(text: str, *, in_tmux: bool) -> str:
    """Return OSC 9 with an inert line; terminals that do not know it drop it. tmux hands on what is wrapped for it."""
    # A number and a semicolon first are other commands of some terminals.
    sequence = f"\x1b]9;{TITLE}: {text}\x07"
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\" if in_tmux else sequence
