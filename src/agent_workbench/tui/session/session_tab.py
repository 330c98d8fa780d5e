"""Tab of one session: its main screen with the dialogs above it, its newest update, and its unsent drafts."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from textual.app import SuspendNotSupported
from textual.message import Message
from textual.notifications import SeverityLevel

from agent_workbench.core.errors import ExtraMissing, WorkbenchError
from agent_workbench.core.extras import or_absent
from agent_workbench.core.intents import Intent, Leave, StopAnswer
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.tui.bridge import carry_updates
from agent_workbench.tui.panes.diff_viewer import HunkEditWanted, ReasonWanted
from agent_workbench.tui.panes.plan import Requested
from agent_workbench.tui.panes.side_panes import AdvicePane, CodePane, ScratchpadPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen
from agent_workbench.tui.session.session_dialogs import SessionDialogs
from agent_workbench.tui.session.window import SessionApp, SessionWindow, TabNavigation, UserDraft
from agent_workbench.tui.widgets.gate_bar import GateBar
from agent_workbench.tui.widgets.replay_bar import ReplayBar
from agent_workbench.tui.widgets.strips import SessionStrip
from agent_workbench.views.sessions import TabView, view_notification, view_tab

if TYPE_CHECKING:
    from textual.screen import Screen

    from agent_workbench.core.ports.session_host import SessionHandle


Answer = TypeVar("Answer")


class SessionScreen(WorkbenchScreen):
    """Workbench screen connected to a session: key actions become intents or open dialogs."""

    class LeaveWanted(Message):
        """The user leaves this session."""

    def __init__(self, window: SessionWindow, dialogs: SessionDialogs, tabs: TabNavigation) -> None:
        super().__init__(window.clock, window.keymap)
        self._window = window
        self._dialogs = dialogs
        self._tabs = tabs

    def show_tabs(self, tabs: Sequence[TabView], front: int) -> None:
        """Show the tabs of all sessions."""
        for strip in self.query(SessionStrip):  # none before it is mounted, and while the app ends
            strip.show(tabs, front)

    def on_screen_resume(self) -> None:
        """Ask what had to wait for a screen above this one, but for a tab that was closed meanwhile."""
        if self.is_current:
            self._dialogs.settle_question()

    def shown_again(self) -> None:
        """Reset the delay before a decision: another tab covered the proposal until now."""
        if self.is_mounted:
            self.query_one(GateBar).shown_again()

    async def on_session_strip_chosen(self, message: SessionStrip.Chosen) -> None:
        await self._tabs.go_to_number(message.number)

    async def on_gate_bar_decided(self, message: GateBar.Decided) -> None:
        await self._window.want(message.intent)
        if isinstance(message.intent, StopAnswer):
            self._dialogs.task.say_after_stop()

    async def on_replay_bar_moved(self, message: ReplayBar.Moved) -> None:
        await self._window.want(message.intent)

    def on_gate_bar_reason_wanted(self, message: GateBar.ReasonWanted) -> None:
        self._dialogs.gate.ask_reason(message.waiting)

    async def on_gate_bar_edit_wanted(self, message: GateBar.EditWanted) -> None:
        await self._dialogs.gate.edit(message.waiting, outside=message.outside)

    def on_gate_bar_always_wanted(self, message: GateBar.AlwaysWanted) -> None:
        self._dialogs.rules.offer(message.waiting)

    def on_diff_pane_selection_changed(self) -> None:
        self.query_one(GateBar).refresh()

    def on_diff_pane_reason_wanted(self, message: ReasonWanted) -> None:
        self._dialogs.hunks.ask_reason(message)

    async def on_diff_pane_hunk_edit_wanted(self, message: HunkEditWanted) -> None:
        await self._dialogs.hunks.edit(message)

    async def on_plan_pane_requested(self, message: Requested) -> None:
        await self._dialogs.plan.run(message.action, message.row)

    def on_scratchpad_pane_edit_wanted(self, message: ScratchpadPane.EditWanted) -> None:
        self._dialogs.task.edit_notes(message.task, message.text)

    async def on_code_pane_requested(self, message: CodePane.Requested) -> None:
        await self._dialogs.context.run(message.action, message.row)

    def on_steps_pane_place_wanted(self, message: StepsPane.PlaceWanted) -> None:
        self._dialogs.review.show_place(message.place)

    def on_advice_pane_place_wanted(self, message: AdvicePane.PlaceWanted) -> None:
        self._dialogs.review.show_place(message.place)

    async def action_consult(self) -> None:
        await self._dialogs.consult.ask()

    async def action_stop(self) -> None:
        """Stop a consultation first, at the bar or in its pane; else go back to the bar, or stop what runs there."""
        beside = self.bar.has_focus or self.query_one(AdvicePane).has_focus
        if beside and self._dialogs.consult.runs:
            await self._dialogs.consult.stop()
        else:
            await super().action_stop()

    def on_replay_bar_search_wanted(self) -> None:
        self._dialogs.records.search()

    def on_replay_bar_fork_wanted(self) -> None:
        self._dialogs.records.fork_here()

    async def action_new_tab(self) -> None:
        await self._window.open_session(SessionRequest(OpenMode.NEW))

    async def action_new_chat(self) -> None:
        await self._window.open_session(SessionRequest(OpenMode.NEW, chat=True))

    def action_make_task(self) -> None:
        self._dialogs.task.make_task()

    async def action_next_tab(self) -> None:
        await self._tabs.go(1)

    async def action_previous_tab(self) -> None:
        await self._tabs.go(-1)

    async def action_waiting_tab(self) -> None:
        await self._tabs.go_to_waiting()

    async def action_open_here(self) -> None:
        """Open a session that is followed, so that it goes on here."""
        update = self._window.update_shown
        if update is not None and update.live.followed is not None:
            await self._window.open_session(SessionRequest(session=update.state.session))

    def action_suspend(self) -> None:
        self.app.action_suspend_process()

    def action_tour(self) -> None:
        self._dialogs.take_tour()

    async def action_change_mode(self) -> None:
        await self._dialogs.gate.change_mode()

    def action_rules(self) -> None:
        self._dialogs.rules.show()

    def action_models(self) -> None:
        or_absent(self._dialogs.context.show_models, self._tell_missing)

    def action_knowledge(self) -> None:
        or_absent(self._dialogs.knowledge.show, self._tell_missing)

    def action_tell(self) -> None:
        self._dialogs.task.open_line()

    def action_context(self) -> None:
        self._dialogs.context.show_receipt()

    async def action_review(self) -> None:
        await self._dialogs.review.show_review()

    def action_sessions(self) -> None:
        self._dialogs.records.show_sessions()

    def action_audit(self) -> None:
        or_absent(self._dialogs.records.show_audit, self._tell_missing)

    def action_inbox(self) -> None:
        or_absent(self._dialogs.inbox.show, self._tell_missing)

    def action_progress(self) -> None:
        or_absent(self._dialogs.plan.show_progress, self._tell_missing)

    def _tell_missing(self, missing: ExtraMissing) -> None:
        self._window.tell(f"{missing}; {missing.advice}", "error")

    def action_undo(self) -> None:
        self._dialogs.task.undo()

    def action_abort(self) -> None:
        self._dialogs.task.abort()

    def action_help(self) -> None:
        from agent_workbench.tui.screens.help import HelpScreen

        self._window.push_screen(HelpScreen(self._window.keymap, (self.scope,)))

    def action_leave(self) -> None:
        self.post_message(self.LeaveWanted())


class SessionTab:
    """A session with its own stack of screens: the main screen, and the dialogs above it.

    Its panes are shown before the session is open; `connect` follows. While another tab is in front, only the newest
    update and the state of the session are kept. `followed`: the session is shown as an item of the inbox.
    """

    session: "SessionHandle"

    @dataclass
    class Updated(Message, namespace="session_tab"):
        """The session has an update that is not shown yet."""

        tab: "SessionTab"

    def __init__(self, app: SessionApp[SessionUpdate], mode: str, tabs: TabNavigation) -> None:
        self.mode = mode
        self.clock = app.clock
        self.keymap = app.keymap
        self.past = app.environment.past
        self.plan_work = app.environment.plan_work
        self.pull_requests = app.environment.pull_requests
        self.host = app.host
        self.update_shown: SessionUpdate | None = None
        self.view = TabView()
        self.draft: UserDraft | None = None
        self.opens_chat = False
        self.leaving = False
        self.followed = False
        self.notified = ""
        self.dialogs = SessionDialogs(self)
        self.workbench = SessionScreen(self, self.dialogs, tabs)
        self._app = app
        self._tabs = tabs
        self._newest: SessionUpdate | None = None
        self._state_known = False
        self._notices_shown = 0
        self._submitted: set[asyncio.Future[Outcome]] = set()
        self._connected = False
        self._left_early = ""

    @property
    def in_front(self) -> bool:
        """True if this tab is in front."""
        return self._app.current_mode == self.mode

    @property
    def screens(self) -> "list[Screen[object]]":
        """Its screens, the main screen first."""
        return cast("list[Screen[object]]", self._app.get_screen_stack(self.mode))

    @property
    def screen(self) -> "Screen[object]":
        """Its topmost screen."""
        return self.screens[-1]

    def connect(self, session: "SessionHandle") -> None:
        """Take updates of the session until it has ended; the panes are mounted."""
        self.session = session
        self._connected = True
        self._app.run_worker(carry_updates(session, self._take, self._app.idle_seconds), name="bridge")
        if self._left_early:
            self._submitted.add(asyncio.ensure_future(session.submit(Leave(self._left_early))))

    def _take(self, update: SessionUpdate) -> None:
        """Keep the newest update; no second message is posted while one waits to be shown."""
        waits = self._newest is not None
        self._newest = update
        if update.ended or (self.in_front and not waits):
            self._app.post_message(self.Updated(self))
        self._note_state(update)

    def _note_state(self, update: SessionUpdate) -> None:
        """Show the session's state in the strip of tabs, and notify the user of a pending proposal."""
        view, notification = view_tab(update), view_notification(update)
        if view != self.view:
            self.view = view
            self._tabs.show_strip()
        # The user knows of what waited when the session was opened.
        if self._state_known or update.live.question is not None:
            self._app.notifier.note(self, notification)
        else:
            self.notified = notification.key if notification is not None else ""
        if update.state.session:
            self._state_known = True

    def show_newest(self) -> SessionUpdate | None:
        """Show the newest update and return it; None if it is shown already, or another tab is in front.

        While the app ends, its screens are gone before its messages are.
        """
        update = self._newest
        if update is None or not (self.in_front or update.ended):  # a dialog that it closes would be that tab's
            return None
        if not self._app.is_running:
            return None
        self._newest = None
        self.update_shown = update
        if update.ended:
            return update
        self.workbench.updates.show(update)
        self.dialogs.follow(update)
        for notice in update.live.notices:
            if notice.number > self._notices_shown:
                self._notices_shown = notice.number
                self.tell(notice.text)
        self.dialogs.settle_question()
        return update

    async def want(self, intent: Intent) -> None:
        """Submit an intent without waiting for it; tell the user later if it was refused."""
        outcome = asyncio.ensure_future(self.session.submit(intent))
        self._submitted.add(outcome)
        outcome.add_done_callback(self._tell_outcome)
        if self.followed:
            outcome.add_done_callback(self._go_on)

    def _go_on(self, submitted: "asyncio.Future[Outcome]") -> None:
        """Go to the next item of the inbox after a decision."""
        decided = not submitted.cancelled() and isinstance(submitted.result(), Accepted)
        if decided and self.in_front and not self.leaving:
            self.run_worker(self._tabs.go_to_waiting(after_decision=True), group="inbox")

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
        """Leave the session, as soon as there is one; the tab is closed when the session has ended."""
        self.leaving = True
        if self._connected:
            await self.want(Leave(reason))
        else:
            self._left_early = reason

    def tell(self, text: str, severity: "SeverityLevel" = "information") -> None:
        """Show a notice in a corner for a while, with the tab's name if another one is in front."""
        self._app.tell(text if self.in_front else f"{self.view.name}: {text}", severity)

    def push_screen(
        self,
        screen: "Screen[Answer]",
        callback: "Callable[[Answer | None], None] | Callable[[Answer | None], Awaitable[None]] | None" = None,
    ) -> Awaitable[None]:
        """Open a screen above the others of this tab, also while another tab is in front."""
        return self._app.push_screen(screen, callback, mode=self.mode)

    def pop_screen(self) -> None:
        """Close the topmost screen of the app."""
        self._app.pop_screen()

    def run_worker(self, work: Coroutine[None, None, None], *, group: str, exclusive: bool = False) -> None:
        """Run work until it is done or the tab is closed."""
        self.workbench.run_worker(work, group=group, exclusive=exclusive)

    async def edit_outside(self, text: str, suffix: str) -> str | None:
        """Return `text` as edited in an external editor, which has the terminal meanwhile; the session continues.

        If that cannot run, tell the user and return None.
        """
        edit_text = self._app.environment.edit_text
        if edit_text is None:
            self.tell("there is no editor here; e edits in the workbench", "warning")
            return None
        try:
            with self._app.batch_update(), self._app.suspend():
                return await edit_text(text, suffix)
        except SuspendNotSupported:
            self.tell("an editor cannot have this terminal; e edits in the workbench", "warning")
        except WorkbenchError as error:
            self.tell(f"{error}: {error.advice}" if error.advice else str(error), "warning")
        return None

    async def open_session(self, request: "SessionRequest") -> None:
        """Open a session in a tab of its own."""
        await self._tabs.open(request)

    def picture(self, title: str) -> str:
        """Return the screen as an SVG."""
        from agent_workbench.tui.pictures import screen_lines, to_svg

        return to_svg(screen_lines(self._app), title)
