"""Main screen of a session's tab. It forwards key actions to the session, or opens a dialog for them."""

from collections.abc import Sequence

from textual.message import Message

from agent_workbench.core.intents import StopAnswer
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.tui.bars.gate_bar import GateBar
from agent_workbench.tui.bars.replay_bar import ReplayBar
from agent_workbench.tui.bars.session_strip import SessionStrip
from agent_workbench.tui.panes.advice import AdvicePane
from agent_workbench.tui.panes.code import CodePane
from agent_workbench.tui.panes.diff.viewer import HunkEditWanted, ReasonWanted
from agent_workbench.tui.panes.plan import Requested
from agent_workbench.tui.panes.scratchpad import ScratchpadPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen
from agent_workbench.tui.session.dialogs.session import SessionDialogs
from agent_workbench.tui.session.window import SessionWindow, TabNavigation
from agent_workbench.views.sessions.tabs import TabView


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

    def action_knowledge(self) -> None:
        self._dialogs.knowledge.show()

    def action_tell(self) -> None:
        self._dialogs.task.open_line()

    def action_context(self) -> None:
        self._dialogs.context.show_receipt()

    async def action_review(self) -> None:
        await self._dialogs.review.show_review()

    def action_sessions(self) -> None:
        self._dialogs.records.show_sessions()

    def action_audit(self) -> None:
        self._dialogs.records.show_audit()

    def action_inbox(self) -> None:
        self._dialogs.inbox.show()

    def action_progress(self) -> None:
        self._dialogs.plan.show_progress()

    def action_undo(self) -> None:
        self._dialogs.task.undo()

    def action_abort(self) -> None:
        self._dialogs.task.abort()

    def action_help(self) -> None:
        from agent_workbench.tui.screens.help import HelpScreen

        self._window.push_screen(HelpScreen(self._window.keymap, (self.scope,)))

    def action_leave(self) -> None:
        self.post_message(self.LeaveWanted())
