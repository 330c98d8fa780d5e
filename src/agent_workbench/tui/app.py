"""The workbench in a terminal: it shows updates of sessions and submits intents of the user."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from textual import on
from textual.app import SystemCommand
from textual.driver import Driver
from textual.screen import Screen

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.palette import key_commands
from agent_workbench.tui.session.tabs import MODE, InboxWatch, Tabs
from agent_workbench.tui.session.window import AppEnvironment, SessionApp
from agent_workbench.tui.terminal_app import DIALOG_STYLES, STYLES

if TYPE_CHECKING:
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.core.ports.machine import Clock
    from agent_workbench.core.ports.session_host import SessionHost
    from agent_workbench.core.session_request import SessionRequest
    from agent_workbench.core.settings import UiSettings
    from agent_workbench.tui.session.session_tab import SessionScreen, SessionTab

LEAVE_SECONDS = 2.0
"""Time between two presses of the key that leaves a session."""
LEAVING = "leaving: what runs is stopped, everything is kept"


class WorkbenchApp(SessionApp["SessionUpdate"]):
    """Shows sessions until the last has ended; returns its last update. `keys` moves keys by their names.

    The panes come first, then the `first` session of `host`. `failure`: why that cannot be opened. `first_screen` is
    set when the panes are painted: slow work begins after that.
    """

    TITLE = "Agent Workbench"
    CSS_PATH = [*STYLES]
    DEFAULT_MODE = f"{MODE} 1"
    BINDINGS = bindings(Scope.ALWAYS)
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        host: "SessionHost",
        first: "SessionRequest",
        *,
        clock: "Clock",
        theme: str = "textual-dark",
        keys: Mapping[str, str] | None = None,
        first_run: bool = False,
        first_screen: asyncio.Event | None = None,
        environment: AppEnvironment | None = None,
    ) -> None:
        super().__init__(host, clock, Keymap(keys or {}), environment or AppEnvironment())
        self.first_screen = first_screen or asyncio.Event()
        self.failure: WorkbenchError | None = None
        self.tabs = Tabs(self, self.on_session_tab_updated)
        self.farewells: list[str] = []
        self._first = first
        self.holds_keys = True
        self._wanted_theme = theme
        self._first_run = first_run
        self._ui_settings: UiSettings | None = None
        self._leaving = False
        self._interrupted_at: float | None = None
        self._inbox_told = False
        self.animation_level = "none"

    @property
    def workbench(self) -> "SessionScreen":
        """Main screen of the session in front."""
        return self.tabs.front.workbench

    @property
    def update_shown(self) -> "SessionUpdate | None":
        """Update that the session in front shows; None before the first."""
        return self.tabs.front.update_shown if self.tabs.all else None

    def get_default_screen(self) -> "SessionScreen":
        """Return the panes of the first session."""
        return self.tabs.front.workbench

    def on_mount(self) -> None:
        self._apply_looks(self._wanted_theme)

    @on(Driver.SignalResume)
    def draw_again(self) -> None:
        """Draw all of the screen: after Ctrl-Z and `fg` the terminal begins empty."""
        self.refresh(layout=True)

    def _apply_looks(self, theme: str) -> None:
        """Apply the keymap and a theme; tell the user what is wrong with them."""
        self.set_keymap(self.keymap.moved)
        if not self.choose_theme(theme):
            self.tell(f"there is no theme {theme!r}; Ctrl-P lists them", "warning")
        for trouble in self.keymap.troubles():
            self.tell(f"ui.keys: {trouble}", "warning")

    async def on_workbench_screen_ready(self) -> None:
        """Open the first session when its panes are on the screen, and handle the early keys."""
        if self.tabs.all or self._leaving:
            return
        from agent_workbench.tui.notifier import Notifier

        await asyncio.to_thread(self.stylesheet.read_all, list(DIALOG_STYLES))
        self.stylesheet.parse()
        self.notifier = Notifier(self, self.environment.desktop, in_tmux=self.environment.in_tmux)
        self.failure = await self.tabs.open_first(self._first)
        if not self.tabs.all:
            self.exit()
            return
        self.first_screen.set()
        self.tabs.front.dialogs.tour_due = self._first_run
        await self.release_keys()

    async def on_session_tab_updated(self, message: "SessionTab.Updated") -> None:
        """Show the newest update of a tab; close the tab with its last update, and the app with its last tab."""
        tab = message.tab
        update = tab.show_newest()
        if update is None:
            return
        if update.ended:
            self.farewells.append(update.farewell)
            if not await self.tabs.close(tab, update.farewell):
                self.exit(update)
            return
        if update.state.session and not self._inbox_told:  # before, the session's own proposal would be counted
            self._inbox_told = True
            self.run_worker(InboxWatch(self, self.tabs).run(), group="inbox")
        wanted = update.live.ui
        if wanted is not None and wanted != self._ui_settings:
            self._ui_settings = wanted
            self.clipboard_allowed = wanted.clipboard
            self.notifier.ways = wanted.notify
            self.keymap.move(dict(wanted.keys))
            self._apply_looks(wanted.theme)

    async def leave(self, reason: str = "left by the user") -> None:
        """Leave all sessions; before there is one, exit."""
        self._leaving = True
        if not self.tabs.all:
            self.exit()
        for tab in self.tabs.all:
            await tab.leave(reason)

    async def on_session_screen_leave_wanted(self) -> None:
        await self.leave_front()

    async def leave_front(self) -> None:
        """Leave the session in front; the other tabs stay open."""
        if len(self.tabs.all) <= 1:
            await self.action_leave_anyway()
        elif not self.tabs.front.leaving:
            self.tell(LEAVING)
            await self.tabs.front.leave()

    async def action_leave_anyway(self) -> None:
        """Leave all sessions; at a second press do not wait for their ends."""
        if self._leaving and self.update_shown is not None:
            self.exit(self.update_shown)
            return
        self.tell(LEAVING)
        await self.leave()

    async def action_interrupt(self) -> None:
        """Leave the session in front at the second press within `LEAVE_SECONDS`."""
        now, before = self.clock.monotonic_seconds(), self._interrupted_at
        self._interrupted_at = now
        if not self.tabs.all or (before is not None and now - before <= LEAVE_SECONDS):
            self._interrupted_at = None
            await self.leave_front()
        else:
            key = self.keymap.first(Scope.ALWAYS, "interrupt")
            self.tell(f"{key} again within {LEAVE_SECONDS:g} s leaves this session")

    async def action_next_tab(self) -> None:
        await self.tabs.go(1)

    async def action_previous_tab(self) -> None:
        await self.tabs.go(-1)

    def action_picture(self) -> None:
        """Save a picture of the screen as it is without the palette."""
        if self.tabs.all:
            self.call_after_refresh(self.tabs.front.dialogs.records.save_picture)

    def action_palette(self) -> None:
        self.action_command_palette()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Ctrl-C to the widget while text is edited or selected: it copies."""
        del parameters
        # Fields of text have a selection of their own.
        copies = hasattr(self.screen.focused, "selected_text") or bool(self.screen.selections)
        return not (action == "interrupt" and copies)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield all actions by name, for the palette."""
        if self.tabs.all:
            yield from key_commands(self.workbench, self.keymap)
        yield SystemCommand("Picture", "Save a picture (SVG) of the screen as a new file", self.action_picture)
        yield SystemCommand("Theme", "Change the colours for now; `ui.theme` keeps them", self.action_change_theme)
