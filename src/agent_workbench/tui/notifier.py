"""Notifications for a user who looks elsewhere: bell, terminal, desktop."""

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeVar

from agent_workbench.core.background import in_background
from agent_workbench.core.settings import CallBy, UiSettings
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.terminal_app import TerminalApp
from agent_workbench.views.sessions import NOTIFICATION_TITLE, TabNotification, should_notify

if TYPE_CHECKING:
    from agent_workbench.core.ports.machine import Desktop

Result = TypeVar("Result")
MOMENT_SECONDS = 1.0
"""Seconds a proposal must wait before the user is notified; the policy answers most of them sooner."""


class NotifyingTab(Protocol):
    """Tab that waits for the user. `notified` is the key of the last notification about it."""

    mode: str
    notified: str

    @property
    def in_front(self) -> bool:
        """True if the tab is in front."""


class Notifier:
    """Notifies once of each thing that waits, in the `ways` the user chose, and never while the user looks at it."""

    def __init__(self, app: TerminalApp[Result], desktop: "Desktop | None", *, in_tmux: bool) -> None:
        self.moment_seconds = MOMENT_SECONDS
        self.ways: tuple[CallBy, ...] = UiSettings().notify
        self._app = app
        self._desktop = desktop
        self._in_tmux = in_tmux
        self._waiting: dict[str, TabNotification] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def note(self, tab: NotifyingTab, notification: TabNotification | None) -> None:
        """Note what a tab waits for now, None for nothing; notify the user if it still does after a moment."""
        key = notification.key if notification is not None else ""
        waiting = self._waiting.get(tab.mode)
        if notification is None or key == tab.notified:
            self._waiting.pop(tab.mode, None)
            tab.notified = key
        elif waiting is None or waiting.key != key:
            self._waiting[tab.mode] = notification
            self._app.set_timer(self.moment_seconds, lambda: self._notify_after(tab, notification))

    def _notify_after(self, tab: NotifyingTab, notification: TabNotification) -> None:
        if self._waiting.get(tab.mode) != notification:
            return
        del self._waiting[tab.mode]
        focused = self._app.terminal_focused
        wanted = should_notify(notification, tab.notified, focused=focused, in_front=tab.in_front)
        tab.notified = notification.key
        if wanted:
            self._notify(sanitize_line(notification.text, 200))

    def call(self, text: str) -> None:
        """Notify a user who looks elsewhere of what another process does, which notifies the desktop itself."""
        if self._app.terminal_focused is False:
            self._notify(sanitize_line(text, 200), frozenset({CallBy.BELL, CallBy.TERMINAL}))

    def _notify(self, text: str, ways: frozenset[CallBy] = frozenset(CallBy)) -> None:
        wanted = ways.intersection(self.ways)
        if CallBy.BELL in wanted:
            self._app.bell()
        if CallBy.TERMINAL in wanted:
            self._app.write_control(terminal_notification(text, in_tmux=self._in_tmux))
        if CallBy.DESKTOP in wanted and self._desktop is not None:
            task = in_background(self._desktop.notify(NOTIFICATION_TITLE, text))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)


def terminal_notification(text: str, *, in_tmux: bool) -> str:
    """Return OSC 9 with an inert line, wrapped for tmux, which hands it on. Terminals that do not know it drop it."""
    # A number and a semicolon at the beginning are other commands of some terminals.
    sequence = f"\x1b]9;{NOTIFICATION_TITLE}: {text}\x07"
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\" if in_tmux else sequence
