"""The workbench: a session in a terminal. It shows updates and hands on what the user wants; it decides nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.app import SystemCommand
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen

from agent_workbench.core.inert import inert
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.palette import key_commands
from agent_workbench.tui.screens.opening import OpeningScreen
from agent_workbench.tui.terminal_app import TerminalApp

# What knows sessions, panes and dialogues is imported in functions here: only so the first frame comes before it.
if TYPE_CHECKING:
    from agent_workbench.core.intents import Intent
    from agent_workbench.core.live import Question, SessionUpdate
    from agent_workbench.core.ports import Clock, Session
    from agent_workbench.core.sessions import Onward, PastSessions
    from agent_workbench.core.settings import UiSettings
    from agent_workbench.tui.gate_dialogues import Draft
    from agent_workbench.tui.served_driver import ServedDriver
    from agent_workbench.tui.session_screen import SessionScreen

NOTICE_SECONDS = 8.0
HERE = Path(__file__).parent
FIRST_STYLES = ("app.tcss", "screens/opening.tcss")
MORE_STYLES = (
    "workbench_screen.tcss",
    "widgets/rows.tcss",
    "widgets/bar.tcss",
    "widgets/status_line.tcss",
    "widgets/tab_strip.tcss",
    "screens/dialogue.tcss",
)


class WorkbenchApp(TerminalApp["SessionUpdate"]):
    """Shows a session until it has ended; returns its last update. `keys` moves keys by name (docs/keys.md).

    It opens in two steps: a first frame that needs next to nothing, then the panes and the session, which `begin`
    returns. `first_screen` is set when the panes stand: what takes its time is better begun after that. `past` is what
    is known of the repo's sessions; the one in `onward` is to be shown after this one. `edit_text` lets the user's own
    editor have the terminal: it takes a text and the ending of a file's name, and returns what became of the text.
    """

    workbench: "SessionScreen"

    TITLE = "Agent Workbench"
    CSS_PATH = [HERE / style for style in FIRST_STYLES]
    BINDINGS = bindings(Scope.ALWAYS)
    ENABLE_COMMAND_PALETTE = True

    class News(Message):
        """The session has an update that was not shown yet."""

    def __init__(
        self,
        begin: Callable[[], "Session"],
        *,
        clock: "Clock",
        theme: str = "textual-dark",
        keys: Mapping[str, str] | None = None,
        first_run: bool = False,
        past: "PastSessions | None" = None,
        edit_text: "Callable[[str, str], Awaitable[str]] | None" = None,
        served: bool = False,
    ) -> None:
        super().__init__(_served_driver() if served else None)
        self.clock = clock
        self.first_screen = asyncio.Event()
        self.keymap = Keymap(keys or {})
        self.update_shown: SessionUpdate | None = None
        self.session: Session | None = None
        self.past = past
        self.edit_text = edit_text
        self.onward: Onward | None = None
        self._begin = begin
        self._typed: list[events.Key] | None = []
        self._wanted_theme = theme
        self._first_run = first_run
        self._looks: UiSettings | None = None
        self._newest: SessionUpdate | None = None
        self._leaving = False
        self.draft: Draft | None = None
        self._question: Question | None = None
        self._notices_shown = 0
        self.animation_level = "none"

    def get_default_screen(self) -> OpeningScreen:
        """Return the first frame; the main screen is laid over it."""
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
        """Load the rest and lay the main screen over the first frame, in one go."""
        await asyncio.to_thread(self.stylesheet.read_all, [HERE / style for style in MORE_STYLES])
        if self._leaving:
            return
        self.stylesheet.parse()
        from agent_workbench.tui.session_screen import SessionScreen

        self.workbench = SessionScreen(self.clock, self.keymap)
        self.session = self._begin()
        with self.batch_update():
            await self.push_screen(self.workbench)

    def _take_looks(self, theme: str) -> None:
        """Put the keys of the keymap and a theme in force, and say what of it there is not."""
        self.set_keymap(self.keymap.moved)
        if not self.choose_theme(theme):
            self.tell(f"there is no theme {theme!r}; Ctrl-P lists them", "warning")
        for name in self.keymap.unknown:
            self.tell(f"ui.keys: there is no key named {name!r}; docs/keys.md lists the names", "warning")

    async def on_workbench_screen_ready(self) -> None:
        self.call_after_refresh(self.first_screen.set)
        self.run_worker(self._read(), name="bridge")
        if self._first_run:
            from agent_workbench.tui import dialogues

            await dialogues.welcome(self, self._settle_question)
        typed, self._typed = self._typed or [], None
        for key in typed:  # nobody closes the welcome with a key that came before it
            if not self._first_run or key.key.startswith("ctrl+"):
                await self.on_event(key)

    async def _read(self) -> None:
        from agent_workbench.tui.bridge import carry_updates

        if self.session is not None:
            await carry_updates(self.session, self._take)

    def _take(self, update: "SessionUpdate") -> None:
        """Keep the newest update; while one waits to be shown, no second message is sent for it."""
        waits = self._newest is not None
        self._newest = update
        if not waits:
            self.post_message(self.News())

    def on_workbench_app_news(self) -> None:
        """Show the newest update; the last one ends the app."""
        update, self._newest = self._newest, None
        if update is None:
            return
        self.update_shown = update
        if update.ended:
            self.exit(update)
            return
        live = update.live
        if live.ui is not None and live.ui != self._looks:
            self._looks = live.ui
            self.clipboard_allowed = live.ui.clipboard
            self.keymap.move(dict(live.ui.keys))
            self._take_looks(live.ui.theme)
        self.workbench.show(update)
        from agent_workbench.tui import dialogues

        dialogues.say_scripted(self)
        dialogues.refresh(self, update)
        if live.notice and live.notice_number != self._notices_shown:
            self._notices_shown = live.notice_number
            self.tell(live.notice)
        self._settle_question()

    def tell(self, text: str, severity: SeverityLevel = "information") -> None:
        """Say something in a corner for a while."""
        self.notify(inert(text, limit_chars=2000), severity=severity, timeout=NOTICE_SECONDS, markup=False)

    def _settle_question(self) -> None:
        """Ask what the session asks, once; take the question back when it is settled."""
        wanted = self.update_shown.live.question if self.update_shown is not None else None
        if wanted == self._question or self.screen.id == "welcome":
            return
        if self._question is not None and self.screen.id == "question":
            self.pop_screen()
        self._question = wanted
        if wanted is not None:
            from agent_workbench.tui import dialogues

            dialogues.ask_question(self, wanted)

    async def want(self, intent: "Intent") -> None:
        """Hand an intent to the session."""
        if self.session is not None:
            await self.session.submit(intent)

    async def leave(self, reason: str = "left by the user") -> None:
        """Have the session left; before there is one, just go."""
        from agent_workbench.core.intents import Leave

        if self.session is None:
            self._leaving = True
            self.exit()
        await self.want(Leave(reason))

    async def action_leave_anyway(self) -> None:
        """Leave; asked a second time, do not wait for the session to be closed."""
        if self._leaving and self.update_shown is not None:
            self.exit(self.update_shown)
            return
        self._leaving = True
        self.tell("leaving: what runs is stopped, everything is kept")
        await self.leave()

    async def action_interrupt(self) -> None:
        await self.action_leave_anyway()

    def action_palette(self) -> None:
        self.action_command_palette()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Ctrl-C copies while a text is edited, or some of it is selected."""
        del parameters
        copies = self.screen.id in ("edit", "plan-text") or bool(self.screen.selections)
        return not (action == "interrupt" and copies)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield every action by its name, for the palette."""
        yield from key_commands(self.workbench, self.keymap)
        yield SystemCommand("Theme", "Change the colours for now; `ui.theme` keeps them", self.action_change_theme)


def _served_driver() -> "type[ServedDriver]":
    from agent_workbench.tui.served_driver import ServedDriver

    return ServedDriver
