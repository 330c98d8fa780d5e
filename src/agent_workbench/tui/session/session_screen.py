"""What the user wants in the panes and bars: handed to the session, or asked about first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_workbench.core.intents import DropChunk, Intent, PinChunk
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.state.applied_diffs import last_applied_diff
from agent_workbench.tui.bars.gate_bar import GateBar
from agent_workbench.tui.bars.replay_bar import ReplayBar
from agent_workbench.tui.bars.session_strip import SessionStrip
from agent_workbench.tui.panes.code import CodeAction, CodePane
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.panes.diff.messages import HunkEditWanted, ReasonWanted
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.scratchpad import ScratchpadPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.panes.workbench_screen import WorkbenchScreen
from agent_workbench.tui.screens.help import HelpScreen
from agent_workbench.tui.session import context_dialogs as context_dialogues
from agent_workbench.tui.session import gate_dialogs as gate_dialogues
from agent_workbench.tui.session import hunk_dialogs as hunk_dialogues
from agent_workbench.tui.session import plan_dialogs as plan_dialogues
from agent_workbench.tui.session import record_dialogs as past_dialogues
from agent_workbench.tui.session import review_dialogs as review_dialogues
from agent_workbench.tui.session import rule_dialogs as rule_dialogues
from agent_workbench.tui.session import task_dialogs as dialogues
from agent_workbench.views.code.code_pane import CodeRow, CodeState
from agent_workbench.views.sessions.tabs import TabView

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab


class SessionScreen(WorkbenchScreen):
    """The main screen of a `SessionTab`."""

    def __init__(self, tab: "SessionTab") -> None:
        super().__init__(tab.clock, tab.keymap)
        self.bench = tab

    def on_workbench_screen_ready(self) -> None:
        """Begin to read the session's updates; the app has other things to begin."""
        self.bench.app.run_worker(self.bench.read(), name="bridge")

    def show_tabs(self, tabs: Sequence[TabView], front: int) -> None:
        """Show which sessions there are, and how they stand."""
        if self.is_mounted:
            self.query_one(SessionStrip).show(tabs, front)

    def shown_again(self) -> None:
        """Let nothing at the gate count as seen that another tab was over just now."""
        if self.is_mounted:
            self.query_one(GateBar).shown_again()

    async def on_session_strip_chosen(self, message: SessionStrip.Chosen) -> None:
        await self.bench.app.tabs.go_to_number(message.number)

    async def action_new_tab(self) -> None:
        """Begin another session beside this one."""
        await self.bench.app.tabs.open(SessionRequest(OpenMode.NEW))

    async def action_next_tab(self) -> None:
        await self.bench.app.tabs.go(1)

    async def action_previous_tab(self) -> None:
        await self.bench.app.tabs.go(-1)

    async def action_tour(self) -> None:
        """Take the tour."""
        await dialogues.take_tour(self.bench)

    async def action_waiting_tab(self) -> None:
        await self.bench.app.tabs.go(1, waiting=True)

    async def on_gate_bar_decided(self, message: GateBar.Decided) -> None:
        await self.bench.want(message.intent)

    async def on_replay_bar_moved(self, message: ReplayBar.Moved) -> None:
        await self.bench.want(message.intent)

    async def on_plan_pane_requested(self, message: PlanPane.Requested) -> None:
        await plan_dialogues.change_plan(self.bench, message.action, message.row)

    def on_gate_bar_reason_wanted(self, message: GateBar.ReasonWanted) -> None:
        gate_dialogues.ask_reason(self.bench, message.waiting)

    async def on_gate_bar_edit_wanted(self, message: GateBar.EditWanted) -> None:
        await gate_dialogues.edit_proposal(self.bench, message.waiting, outside=message.outside)

    def on_diff_pane_reason_wanted(self, message: ReasonWanted) -> None:
        hunk_dialogues.ask_why_left(self.bench, self.query_one(DiffPane), message)

    def on_diff_pane_selection_changed(self) -> None:
        self.query_one(GateBar).refresh()

    async def on_diff_pane_hunk_edit_wanted(self, message: HunkEditWanted) -> None:
        await hunk_dialogues.edit_hunk(self.bench, message)

    async def on_gate_bar_always_wanted(self, message: GateBar.AlwaysWanted) -> None:
        await rule_dialogues.offer_rules(self.bench, message.waiting)

    def action_rules(self) -> None:
        rule_dialogues.show_rules(self.bench)

    def on_scratchpad_pane_edit_wanted(self, message: ScratchpadPane.EditWanted) -> None:
        dialogues.edit_notes(self.bench, message.task, message.text)

    async def on_code_pane_requested(self, message: CodePane.Requested) -> None:
        match message.action, message.row:
            case CodeAction.OPEN, CodeRow() as row:
                context_dialogues.show_piece(self.bench, row.key)
            case CodeAction.PIN, CodeRow() as row:
                await self._want_in_task(PinChunk(row.place, row.state is not CodeState.PINNED))
            case CodeAction.DROP, CodeRow() as row:
                await self._want_in_task(DropChunk(row.place))
            case CodeAction.ADD, _ if self._task_goes_on():
                context_dialogues.find_code(self.bench)

    async def _want_in_task(self, intent: Intent) -> None:
        if self._task_goes_on():
            await self.bench.want(intent)

    def _task_goes_on(self) -> bool:
        """Return whether there is a task for which something can be wanted; if not, say so."""
        update = self.bench.update_shown
        if update is not None and update.live.replay is not None:
            self.bench.tell("a recording is looked at, nothing of it can be changed", "warning")
            return False
        if update is None or not update.state.unfinished:
            self.bench.tell("no task is being worked on", "warning")
            return False
        return True

    def action_tell(self) -> None:
        if self._task_goes_on():
            dialogues.say_to_model(self.bench)

    def action_context(self) -> None:
        context_dialogues.show_receipt(self.bench)

    async def on_steps_pane_place_wanted(self, message: StepsPane.PlaceWanted) -> None:
        await review_dialogues.show_place(self.bench, message.place)

    async def action_review(self) -> None:
        """Show all changes of the selected task, or elsewhere than in the plan of the last one that has any."""
        plan = self.query_one(PlanPane)
        row = plan.selected_row if self.focused is plan else None
        await review_dialogues.show_review(self.bench, row.id if row is not None else "")

    def go_to_entry(self, key: str) -> None:
        """Bring an entry of the steps to the front, selected."""
        self.focus_pane("steps")
        self.query_one(StepsPane).go_to(key)

    def action_sessions(self) -> None:
        past_dialogues.show_sessions(self.bench)

    def on_replay_bar_search_wanted(self) -> None:
        past_dialogues.search_recording(self.bench, self.query_one(ReplayBar).take_matches)

    def on_replay_bar_fork_wanted(self) -> None:
        past_dialogues.fork_here(self.bench)

    def action_undo(self) -> None:
        """Ask whether the diff that was applied last shall be taken back."""
        if not self._task_goes_on():
            return
        run = self.bench.update_shown.state.run if self.bench.update_shown is not None else None
        last = last_applied_diff(run) if run is not None else None
        if last is None:
            self.bench.tell("no diff is applied that could be taken back", "warning")
        else:
            dialogues.confirm_undo(self.bench, last.proposal)

    def action_abort(self) -> None:
        update = self.bench.update_shown
        if update is not None and update.state.unfinished:
            dialogues.confirm_abort(self.bench)
        elif update is not None and update.state.run is not None and update.state.run.merging:
            self.bench.tell(f"{update.state.run.task} is being merged; that is brought to its end", "warning")
        else:
            self.bench.tell("no task is being worked on", "warning")

    def action_help(self) -> None:
        self.bench.push_screen(HelpScreen(self.bench.keymap, (self.scope,)))

    async def action_leave(self) -> None:
        await self.bench.app.leave_tab(self.bench)
