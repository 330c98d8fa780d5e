"""One session in the window: its screens, the newest of its updates, and what the user has begun in it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar, cast

from agent_workbench.core.intents import Intent, Leave
from agent_workbench.core.intents.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.live import PreflightQuestion, SessionUpdate
from agent_workbench.tui.bridge import carry_updates
from agent_workbench.tui.session import task_dialogs as dialogues
from agent_workbench.tui.session.session_screen import SessionScreen
from agent_workbench.views.sessions.tabs import TabView, view_notification, view_tab

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel
    from textual.screen import Screen

    from agent_workbench.core.ports.session_host import SessionHandle
    from agent_workbench.tui.app import WorkbenchApp
    from agent_workbench.tui.session.gate_dialogs import Draft

Answer = TypeVar("Answer")


class SessionTab:
    """A session with a stack of screens of its own: its panes, and the dialogues that it has over them.

    While another tab is in front, of its updates only the newest is kept and how it stands is looked at.
    """

    def __init__(self, app: "WorkbenchApp", mode: str, session: "SessionHandle") -> None:
        self.app = app
        self.mode = mode
        self.session = session
        self.clock = app.clock
        self.keymap = app.keymap
        self.past = app.around.past
        self.workbench = SessionScreen(self)
        self.update_shown: SessionUpdate | None = None
        self.view = TabView()
        self.draft: Draft | None = None
        self.leaving = False
        self.told = ""
        self._newest: SessionUpdate | None = None
        self._met = False
        self._question: PreflightQuestion | None = None
        self._notices_shown = 0
        self._submitted: set[asyncio.Future[Outcome]] = set()

    @property
    def in_front(self) -> bool:
        """Whether it is the tab that is seen."""
        return self.app.current_mode == self.mode

    @property
    def screens(self) -> "list[Screen[object]]":
        """Its screens, the panes first."""
        return cast("list[Screen[object]]", self.app.get_screen_stack(self.mode))

    @property
    def screen(self) -> "Screen[object]":
        """What stands over all else in it."""
        return self.screens[-1]

    async def read(self) -> None:
        """Take the session's updates until it has ended."""
        await carry_updates(self.session, self._take)

    def _take(self, update: SessionUpdate) -> None:
        """Keep the newest update; while one waits to be shown, no second message is sent for it."""
        waits = self._newest is not None
        self._newest = update
        if update.ended or (self.in_front and not waits):
            self.app.post_message(self.app.News(self))
        self._look(update)

    def _look(self, update: SessionUpdate) -> None:
        """Note how the session stands, and have the user called where that is news to them."""
        view, call = view_tab(update), view_notification(update)
        if view != self.view:
            self.view = view
            self.app.tabs.show_line()
        # How a session stood when it was opened is what its user opened it for.
        if self._met or update.live.question is not None:
            self.app.caller.heed(self, call)
        else:
            self.told = call.key if call is not None else ""
        self._met = self._met or bool(update.state.session)

    def show_newest(self) -> SessionUpdate | None:
        """Show the newest update, if there is one that was not shown, and return it; behind another tab only an end."""
        update = self._newest
        if update is None or not (self.in_front or update.ended):  # what it closes would be a dialogue of that tab
            return None
        self._newest = None
        self.update_shown = update
        if update.ended:
            return update
        self.workbench.show(update)
        dialogues.say_scripted(self)
        dialogues.refresh(self, update)
        for notice in update.live.notices:
            if notice.number > self._notices_shown:
                self._notices_shown = notice.number
                self.tell(notice.text)
        self.settle_question()
        return update

    def settle_question(self) -> None:
        """Ask what the session asks, once; take the question back when it is settled."""
        wanted = self.update_shown.live.question if self.update_shown is not None else None
        if wanted == self._question or self.screen.name == "tour":
            return
        if self._question is not None and self.screen.name == "question":
            self.app.pop_screen()
        self._question = wanted
        if wanted is not None:
            dialogues.ask_question(self, wanted)

    async def want(self, intent: Intent) -> None:
        """Submit an intent without waiting for it; tell the user later if it was refused."""
        outcome = asyncio.ensure_future(self.session.submit(intent))
        self._submitted.add(outcome)
        outcome.add_done_callback(self._tell_outcome)

    def ask(self, intent: Intent) -> Awaitable[Outcome]:
        """Submit an intent and return its outcome, which the caller shows."""
        return self.session.submit(intent)

    def _tell_outcome(self, submitted: "asyncio.Future[Outcome]") -> None:
        self._submitted.discard(submitted)
        if submitted.cancelled() or self.leaving:
            return
        outcome = submitted.result()
        if isinstance(outcome, Refused):
            self.tell(outcome.reason)
        elif isinstance(outcome, Accepted) and outcome.note:
            self.tell(outcome.note)

    async def leave(self, reason: str = "left by the user") -> None:
        """Have the session left; the tab goes when it has ended."""
        self.leaving = True
        await self.want(Leave(reason))

    def tell(self, text: str, severity: "SeverityLevel" = "information") -> None:
        """Say something in a corner for a while; with its name where another tab is in front."""
        self.app.tell(text if self.in_front else f"{self.view.name}: {text}", severity)

    def push_screen(
        self,
        screen: "Screen[Answer]",
        callback: "Callable[[Answer | None], None] | Callable[[Answer | None], Awaitable[None]] | None" = None,
    ) -> Awaitable[None]:
        """Lay a screen over the others of this tab, also while another one is in front."""
        return self.app.push_screen(screen, callback, mode=self.mode)

    def run_worker(self, work: Coroutine[None, None, None], *, group: str, exclusive: bool = False) -> None:
        """Do something behind the screens of this tab; it is stopped when the tab goes."""
        self.workbench.run_worker(work, group=group, exclusive=exclusive)
