"""The workbench: sessions in a terminal. It shows updates and hands on what the user wants; it decides nothing."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.app import SystemCommand
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.tui.environment import AppEnvironment
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.palette import key_commands
from agent_workbench.tui.screens.opening import OpeningScreen
from agent_workbench.tui.session.tabs import Tabs
from agent_workbench.tui.terminal.terminal_app import TerminalApp

# What knows sessions, panes and dialogues is imported in functions here: only so the first frame comes before it.
if TYPE_CHECKING:
    from agent_workbench.core.live import SessionUpdate
    from agent_workbench.core.ports.services import Clock
    from agent_workbench.core.ports.session_host import SessionHost
    from agent_workbench.core.session_request import SessionRequest
    from agent_workbench.core.settings import UiSettings
    from agent_workbench.tui.session.session_screen import SessionScreen
    from agent_workbench.tui.session.session_tab import SessionTab
    from agent_workbench.tui.terminal.notifier import Notifier
    from agent_workbench.tui.terminal.served_driver import ServedDriver

NOTICE_SECONDS = 8.0
HERE = Path(__file__).parent
FIRST_STYLES = ("app.tcss", "screens/opening.tcss")
MORE_STYLES = (
    "workbench_screen.tcss",
    "widgets/rows.tcss",
    "widgets/bar.tcss",
    "widgets/status_line.tcss",
    "widgets/tab_strip.tcss",
    "widgets/session_strip.tcss",
    "screens/dialogue.tcss",
)


class WorkbenchApp(TerminalApp["SessionUpdate"]):
    """Shows sessions until the last has ended; returns its last update. `keys` moves keys by name (docs/keys.md).

    It opens in two steps: a first frame that needs next to nothing, then the panes and the `first` session of `host`.
    `failure`: why that cannot be opened. `first_screen` is set when the panes are painted: slow work begins after that.
    """

    TITLE = "Agent Workbench"
    CSS_PATH = [HERE / style for style in FIRST_STYLES]
    BINDINGS = bindings(Scope.ALWAYS)
    ENABLE_COMMAND_PALETTE = True

    caller: "Notifier"

    @dataclass
    class News(Message):
        """The session of a tab has an update that was not shown yet."""

        tab: "SessionTab"

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
        around: AppEnvironment | None = None,
    ) -> None:
        self.around = around or AppEnvironment()
        super().__init__(_served_driver() if self.around.served else None)
        self.clock = clock
        self.host = host
        self.first_screen = first_screen or asyncio.Event()
        self.failure: WorkbenchError | None = None
        self.keymap = Keymap(keys or {})
        self.tabs = Tabs(self)
        self.farewells: list[str] = []
        self.terminal_focused: bool | None = None
        self._first = first
        self._typed: list[events.Key] | None = []
        self._wanted_theme = theme
        self._first_run = first_run
        self._looks: UiSettings | None = None
        self._leaving = False
        self.animation_level = "none"

    @property
    def workbench(self) -> "SessionScreen":
        """The panes of the session in front."""
        return self.tabs.front.workbench

    @property
    def update_shown(self) -> "SessionUpdate | None":
        """Update that the session in front shows; None before the first."""
        return self.tabs.front.update_shown if self.tabs.all else None

    def get_default_screen(self) -> OpeningScreen:
        """Return the first frame; the first session takes its place."""
        return OpeningScreen()

    async def on_event(self, event: events.Event) -> None:
        """Keep keys, with the time of each, until there is somebody whom they are meant for."""
        if self._typed is not None and isinstance(event, events.Key):
            self._typed.append(event)
        else:
            await super().on_event(event)

    def on_mount(self) -> None:
        self._take_looks(self._wanted_theme)

    async def on_opening_screen_shown(self) -> None:
        """Load the rest and put the first session in the place of the first frame, in one go."""
        await asyncio.to_thread(self.stylesheet.read_all, [HERE / style for style in MORE_STYLES])
        if self._leaving:
            return
        self.stylesheet.parse()
        from agent_workbench.tui.terminal.notifier import Notifier

        self.caller = Notifier(self)
        self.failure = await self.tabs.open_first(self._first)
        if self.failure:
            self.exit()

    def _take_looks(self, theme: str) -> None:
        """Put the keys of the keymap and a theme in force, and say what of it there is not."""
        self.set_keymap(self.keymap.moved)
        if not self.choose_theme(theme):
            self.tell(f"there is no theme {theme!r}; Ctrl-P lists them", "warning")
        for trouble in self.keymap.troubles():
            self.tell(f"ui.keys: {trouble}", "warning")

    async def on_workbench_screen_ready(self) -> None:
        """When the first session's panes stand, begin what had to wait for that."""
        if self._typed is None:
            return
        self.call_after_refresh(self.first_screen.set)
        if self._first_run:
            from agent_workbench.tui.session import task_dialogs as dialogues

            await dialogues.take_tour(self.tabs.front)
        typed, self._typed = self._typed, None
        for key in typed:  # nobody closes the tour with a key that came before it
            if not self._first_run or key.key.startswith("ctrl+"):
                await self.on_event(key)

    async def on_workbench_app_news(self, news: News) -> None:
        await self.show_news(news.tab)

    async def show_news(self, tab: "SessionTab") -> None:
        """Show the newest update of a tab; with the last one the tab goes, and with the last tab the app."""
        update = tab.show_newest()
        if update is None:
            return
        if update.ended:
            self.farewells.append(update.farewell)
            if not await self.tabs.drop(tab, update.farewell):
                self.exit(update)
            return
        wanted = update.live.ui
        if wanted is not None and wanted != self._looks:
            self._looks = wanted
            self.clipboard_allowed = wanted.clipboard
            self.caller.ways = wanted.notify
            self.keymap.move(dict(wanted.keys))
            self._take_looks(wanted.theme)

    def tell(self, text: str, severity: SeverityLevel = "information") -> None:
        """Say something in a corner for a while."""
        self.notify(sanitize(text, limit_chars=2000), severity=severity, timeout=NOTICE_SECONDS, markup=False)

    def write_control(self, sequence: str) -> None:
        """Send the terminal what is no part of the screen."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def on_app_focus(self) -> None:
        self.terminal_focused = True

    def on_app_blur(self) -> None:
        self.terminal_focused = False

    async def leave(self, reason: str = "left by the user") -> None:
        """Have all sessions left; before there is one, just go."""
        self._leaving = True
        if not self.tabs.all:
            self.exit()
        for tab in self.tabs.all:
            await tab.leave(reason)

    async def leave_tab(self, tab: "SessionTab") -> None:
        """Leave the session of a tab."""
        if len(self.tabs.all) == 1:
            await self.action_leave_anyway()
        elif not tab.leaving:
            self.tell("leaving: what runs is stopped, everything is kept")
            await tab.leave()

    async def action_leave_anyway(self) -> None:
        """Leave all; asked a second time, do not wait for the sessions to be closed."""
        if self._leaving and self.update_shown is not None:
            self.exit(self.update_shown)
            return
        self.tell("leaving: what runs is stopped, everything is kept")
        await self.leave()

    async def action_interrupt(self) -> None:
        await self.action_leave_anyway()

    async def action_next_tab(self) -> None:
        await self.tabs.go(1)

    async def action_previous_tab(self) -> None:
        await self.tabs.go(-1)

    def action_picture(self) -> None:
        """Keep a picture of what is on screen when nothing of the palette is."""
        from agent_workbench.tui.session import record_dialogs as past_dialogues

        if self.tabs.all:
            self.call_after_refresh(past_dialogues.keep_picture, self.tabs.front)

    def action_palette(self) -> None:
        self.action_command_palette()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Ctrl-C copies while a text is edited, or some of it is selected."""
        del parameters
        copies = self.screen.name in ("edit", "plan-text") or bool(self.screen.selections)
        return not (action == "interrupt" and copies)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield every action by its name, for the palette."""
        if self.tabs.all:
            yield from key_commands(self.workbench, self.keymap)
        yield SystemCommand("Picture", "Keep a picture (SVG) of the screen as a new file", self.action_picture)
        yield SystemCommand("Theme", "Change the colours for now; `ui.theme` keeps them", self.action_change_theme)


def _served_driver() -> "type[ServedDriver]":
    from agent_workbench.tui.terminal.served_driver import ServedDriver

    return ServedDriver
