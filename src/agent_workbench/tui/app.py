"""The workbench: a session in a terminal. It shows updates and hands on what the user wants; it decides nothing."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App, SystemCommand
from textual.filter import LineFilter
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen

from agent_workbench.core.inert import inert
from agent_workbench.core.intents import (
    Intent,
    Leave,
    MergeTask,
    StartTask,
)
from agent_workbench.core.live import Question, SessionUpdate
from agent_workbench.tui import dialogues
from agent_workbench.tui.bridge import carry_updates
from agent_workbench.tui.guard import ControlGuard
from agent_workbench.tui.keymap import KEYS, Keymap, Scope, bindings
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.scratchpad import ScratchpadPane
from agent_workbench.tui.widgets.gate_bar import GateBar
from agent_workbench.tui.widgets.replay_bar import ReplayBar
from agent_workbench.tui.workbench_screen import WorkbenchScreen

if TYPE_CHECKING:
    from agent_workbench.core.ports import Clock, Session
from agent_workbench.core.settings import UiSettings

NOTICE_SECONDS = 8.0
HERE = Path(__file__).parent
STYLES = (
    "app.tcss",
    "workbench_screen.tcss",
    "widgets/rows.tcss",
    "widgets/bar.tcss",
    "widgets/status_line.tcss",
    "widgets/tab_strip.tcss",
    "screens/dialogue.tcss",
)


class WorkbenchApp(App[SessionUpdate]):
    """Shows `session` until it has ended; returns its last update. `keys` moves keys by name (docs/keys.md).

    `first_screen` is set when the first screen stands: what takes its time is better begun after that.
    """

    TITLE = "Agent Workbench"
    CSS_PATH = [HERE / style for style in STYLES]
    BINDINGS = bindings(Scope.ALWAYS)
    ENABLE_COMMAND_PALETTE = True

    class News(Message):
        """The session has an update that was not shown yet."""

    def __init__(
        self,
        session: "Session",
        *,
        clock: "Clock",
        theme: str = "textual-dark",
        keys: Mapping[str, str] | None = None,
        first_run: bool = False,
    ) -> None:
        super().__init__()
        self.clock = clock
        self.first_screen = asyncio.Event()
        self.keymap = Keymap(keys or {})
        self.update_shown: SessionUpdate | None = None
        self._session = session
        self._wanted_theme = theme
        self._first_run = first_run
        self._looks: UiSettings | None = None
        self._newest: SessionUpdate | None = None
        self._leaving = False
        self._question: Question | None = None
        self._notices_shown = 0
        self.workbench = WorkbenchScreen(clock, self.keymap)
        self.animation_level = "none"

    def get_default_screen(self) -> Screen[None]:
        """Return the main screen."""
        return self.workbench

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters with the guard behind them."""
        return [*super().get_line_filters(), ControlGuard()]

    def on_mount(self) -> None:
        self._take_looks(self._wanted_theme)
        if self._first_run:
            dialogues.welcome(self, self._settle_question)

    def _take_looks(self, theme: str) -> None:
        """Put the keys of the keymap and a theme in force, and say what of it there is not."""
        self.set_keymap(self.keymap.moved)
        if theme in self.available_themes:
            self.theme = theme
        else:
            self.tell(f"there is no theme {theme!r}; Ctrl-P lists them", "warning")
        for name in self.keymap.unknown:
            self.tell(f"ui.keys: there is no key named {name!r}; docs/keys.md lists the names", "warning")

    def on_workbench_screen_ready(self) -> None:
        self.call_after_refresh(self.first_screen.set)
        self.run_worker(self._read(), name="bridge")

    async def _read(self) -> None:
        await carry_updates(self._session, self._take)

    def _take(self, update: SessionUpdate) -> None:
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
            self.keymap.move(dict(live.ui.keys))
            self._take_looks(live.ui.theme)
        self.workbench.show(update)
        dialogues.say_scripted(self)
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
            dialogues.ask_question(self, wanted)

    async def want(self, intent: Intent) -> None:
        """Hand an intent to the session."""
        await self._session.submit(intent)

    async def on_gate_bar_decided(self, message: GateBar.Decided) -> None:
        await self.want(message.intent)

    async def on_replay_bar_moved(self, message: ReplayBar.Moved) -> None:
        await self.want(message.intent)

    async def on_plan_pane_start_wanted(self, message: PlanPane.StartWanted) -> None:
        if self.update_shown is None or self.update_shown.state.unfinished:
            self.tell("a task is being worked on; finish or abort it first", "warning")
        else:
            await self.want(StartTask(message.task))

    async def on_plan_pane_merge_wanted(self, message: PlanPane.MergeWanted) -> None:
        await self.want(MergeTask(message.task))

    def on_gate_bar_reason_wanted(self, message: GateBar.ReasonWanted) -> None:
        dialogues.ask_reason(self, message.waiting)

    def on_gate_bar_edit_wanted(self, message: GateBar.EditWanted) -> None:
        dialogues.edit_proposal(self, message.waiting)

    def on_gate_bar_always_wanted(self, message: GateBar.AlwaysWanted) -> None:
        dialogues.confirm_always(self, message.waiting)

    def on_scratchpad_pane_edit_wanted(self, message: ScratchpadPane.EditWanted) -> None:
        dialogues.edit_notes(self, message.task, message.text)

    def on_workbench_screen_abort_wanted(self) -> None:
        if self.update_shown is not None and self.update_shown.state.unfinished:
            dialogues.confirm_abort(self)
        else:
            self.tell("no task is being worked on", "warning")

    def on_workbench_screen_help_wanted(self, message: WorkbenchScreen.HelpWanted) -> None:
        from agent_workbench.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.keymap, message.scopes))

    async def on_workbench_screen_leave_wanted(self) -> None:
        await self.action_leave_anyway()

    async def action_leave_anyway(self) -> None:
        """Leave; asked a second time, do not wait for the session to be closed."""
        if self._leaving and self.update_shown is not None:
            self.exit(self.update_shown)
            return
        self._leaving = True
        self.tell("leaving: what runs is stopped, everything is kept")
        await self.want(Leave())

    async def action_interrupt(self) -> None:
        await self.action_leave_anyway()

    def action_palette(self) -> None:
        self.action_command_palette()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Ctrl-C copies while a text is edited."""
        del parameters
        return not (action == "interrupt" and self.screen.id == "edit")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield every action by its name, for the palette."""
        workbench = self.workbench
        for key in KEYS:
            if key.scope not in (Scope.SCROLL, Scope.ALWAYS):
                node = workbench.node_of(key.scope)
                if node.display:
                    says = f"{', '.join(self.keymap.names(key))}  {key.says}"
                    yield SystemCommand(f"{key.scope}: {key.label}", says, partial(node.run_action, key.action))
        yield SystemCommand("Theme", "Change the colours for now; `ui.theme` keeps them", self.action_change_theme)
