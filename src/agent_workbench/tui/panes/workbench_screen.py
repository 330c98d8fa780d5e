"""The main screen: every update becomes views, and every view goes to its pane."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.live import SessionUpdate
from agent_workbench.tui.bars.bar import Bar
from agent_workbench.tui.bars.gate_bar import GateBar
from agent_workbench.tui.bars.replay_bar import ReplayBar
from agent_workbench.tui.bars.session_strip import SessionStrip
from agent_workbench.tui.bars.status_line import StatusLine
from agent_workbench.tui.bars.tab_strip import TabStrip
from agent_workbench.tui.keymap import Keymap
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.code import CodePane
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.panes.diff.messages import Looked
from agent_workbench.tui.panes.pane_layout import PANES, PaneScreen
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.scratchpad import ScratchpadPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.views.code.code_pane import view_code
from agent_workbench.views.code.shown_code import shown_code_snapshots
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import view_gate
from agent_workbench.views.plan import view_plan
from agent_workbench.views.scratchpad import view_scratchpad
from agent_workbench.views.sessions.replay_bar import view_replay
from agent_workbench.views.status import view_status
from agent_workbench.views.transcript.answer_parts import WRITE_DIFF, split_answer
from agent_workbench.views.transcript.transcript import transcript_snapshots, view_steps

if TYPE_CHECKING:
    from agent_workbench.core.ports.services import Clock

READY_EVENTS, READY_SECONDS = 256, 0.01
"""So many events of a recording are made ready at once, and so long keys have then before the next ones are."""
PLACES = {
    Scope.GATE: "gate",
    Scope.REPLAY: "replay",
    Scope.PLAN: "plan",
    Scope.STEPS: "steps",
    Scope.DIFF: "diff",
    Scope.SCRATCHPAD: "scratchpad",
    Scope.CODE: "code",
}


class WorkbenchScreen(PaneScreen):
    """Shows updates; posts what concerns the whole app."""

    class Ready(Message):
        """The panes are there."""

    class AbortWanted(Message):
        """The user wants to give the task up."""

    class TellWanted(Message):
        """The user wants to say a word to the model."""

    class ContextWanted(Message):
        """The user wants to see what the prompt is made of."""

    class RulesWanted(Message):
        """The user wants to see the rules that count."""

    class SessionsWanted(Message):
        """The user wants to see the sessions of the repo."""

    class LeaveWanted(Message):
        """The user wants to leave."""

    @dataclass
    class HelpWanted(Message):
        """The user wants to know the keys, those of these scopes first."""

        scopes: tuple[Scope, ...]

    def __init__(self, clock: "Clock", keymap: Keymap) -> None:
        super().__init__()
        self._clock = clock
        self._keymap = keymap
        self._transcripts = transcript_snapshots()
        self._code = shown_code_snapshots()
        self.makes_ready = False
        self._waiting = ""
        self._selected_task = ""
        self.update_shown: SessionUpdate | None = None

    def compose(self) -> ComposeResult:
        keys = {pane: self._keymap.first(Scope.EVERYWHERE, f"focus_{pane}") for pane in PANES}
        yield SessionStrip()
        yield TabStrip(tuple((pane, keys[pane], name) for pane, name in PANES.items()))
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield PlanPane()
                yield ScratchpadPane()
            with Vertical(id="middle"):
                yield StepsPane()
            with Vertical(id="right"):
                yield DiffPane()
                yield CodePane()
        yield GateBar(self._clock, self._keymap, lambda: self.query_one(DiffPane).hunks.taking)
        yield ReplayBar(self._keymap)
        yield StatusLine()
        yield Static("", id="too-small", markup=False)

    def on_mount(self) -> None:
        self.query_one(ReplayBar).display = False
        self.arrange_panes()
        self.post_message(self.Ready())

    def show(self, update: SessionUpdate) -> None:
        """Show an update in every part of the screen."""
        before, self.update_shown = self.update_shown, update
        begins = update.state.unfinished and not (before and before.state.unfinished)
        if before is None or _plan_differs(before, update):
            self.query_one(PlanPane).show(view_plan(update.state, update.live.no_plan, update.live.taken))
        steps = self.query_one(StepsPane)
        steps.show(view_steps(update, self._transcripts))
        if begins and not steps.has_focus:
            steps.action_to_bottom_row()
        diff, pane = view_diff(update), self.query_one(DiffPane)
        goes_on = pane.has_focus and pane.hunks.is_edited_by(diff)
        pane.show(diff)
        self.query_one(ScratchpadPane).show(view_scratchpad(update.state, self._selected_task))
        self._show_code(update)
        self.query_one(StatusLine).show(view_status(update))
        self._show_bar(update)
        waits = "" if update.live.replay is not None else diff.proposal
        if waits and waits != self._waiting and not goes_on:
            self._go_to_gate()
        elif begins and self.focused is self.query_one(PlanPane):
            self.set_focus(self.bar)
        self._waiting = waits
        self._show_what_happens(update, diff.proposal)

    def _show_code(self, update: SessionUpdate) -> None:
        pane = self.query_one(CodePane)
        useless = pane.useless
        pane.show(view_code(update.state, update.live.index, self._code))
        if pane.useless != useless:
            self.bar.refresh()

    def _show_bar(self, update: SessionUpdate) -> None:
        replay = view_replay(update)
        gate, bar = self.query_one(GateBar), self.query_one(ReplayBar)
        gate.show(view_gate(update))
        if replay is None:
            return
        bar.show(replay)
        if not bar.display:
            gate.display, bar.display = False, True
            self.set_focus(bar)
            self._get_ready()

    def _get_ready(self) -> None:
        """Make the transcript of a whole recording in slices, so that no jump has to make much of it at once."""
        replay = self.update_shown.live.replay if self.update_shown is not None else None
        self.makes_ready = replay is not None and self._transcripts.reach(replay.recording.events, READY_EVENTS)
        if self.makes_ready:
            self.set_timer(READY_SECONDS, self._get_ready)

    def _go_to_gate(self) -> None:
        self.bring_forward("diff")
        self.set_focus(self.query_one(GateBar))

    def _show_what_happens(self, update: SessionUpdate, proposal: str) -> None:
        """Where one pane has room and the user is at the bar, show the one in which something happens."""
        if not self.single or self.zoomed or self.focused is not self.bar:
            return
        streaming = update.live.streaming
        writes = streaming is not None and split_answer(streaming.text).action == WRITE_DIFF
        if proposal or update.live.running is not None or writes:
            self.bring_forward("diff")
        elif streaming is not None or update.live.replay is not None:
            self.bring_forward("steps")
        elif not update.live.activity and not update.state.unfinished and update.state.run is not None:
            self.bring_forward("plan")

    def on_screen_resume(self) -> None:
        """Draw again what a dialogue covered, so that it counts as seen from now on."""
        self.bar.refresh()
        self.query_one(DiffPane).refresh()

    def node_of(self, scope: Scope) -> Widget:
        """Return what an action of a scope runs on."""
        if scope in PLACES:
            return self.query_one(f"#{PLACES[scope]}")
        return (self.focused or self.bar) if scope is Scope.SCROLL else self

    @property
    def scope(self) -> Scope:
        """The scope of what has the focus."""
        scope = getattr(self.focused, "scope", None)
        return scope if isinstance(scope, Scope) else self.bar.scope

    def action_focus_bar(self) -> None:
        if self._waiting:
            self._go_to_gate()
        super().action_focus_bar()

    def action_abort(self) -> None:
        self.post_message(self.AbortWanted())

    def action_tell(self) -> None:
        self.post_message(self.TellWanted())

    def action_context(self) -> None:
        self.post_message(self.ContextWanted())

    def action_rules(self) -> None:
        self.post_message(self.RulesWanted())

    def action_sessions(self) -> None:
        self.post_message(self.SessionsWanted())

    def action_leave(self) -> None:
        self.post_message(self.LeaveWanted())

    def action_help(self) -> None:
        self.post_message(self.HelpWanted((self.scope,)))

    def on_bar_scroll(self, message: Bar.Scroll) -> None:
        """Scroll the pane that belongs to the bar: what waits, or the transcript of a replay."""
        alone = "steps" if self.query_one(ReplayBar).display else "diff"
        pane = self.query_one(f"#{self.front if self.single else alone}")
        getattr(cast("RowList", pane), f"action_{message.action}")()

    def on_diff_pane_looked(self, message: Looked) -> None:
        self.query_one(GateBar).show_unseen(message.unseen)

    def on_gate_bar_more_wanted(self) -> None:
        self._go_to_gate()
        self.query_one(DiffPane).show_unseen()

    def on_plan_pane_task_selected(self, message: PlanPane.TaskSelected) -> None:
        """Show the notes of the task that is selected, and what can be done with it."""
        self.bar.refresh()
        self._selected_task = message.task
        if self.update_shown is not None:
            self.query_one(ScratchpadPane).show(view_scratchpad(self.update_shown.state, message.task))


def _plan_differs(before: SessionUpdate, now: SessionUpdate) -> bool:
    """Return whether the plan may have to be shown anew; not while a model streams, for a long one takes a while."""
    here = (now.live.no_plan, now.live.taken)
    return before.state is not now.state or (before.live.no_plan, before.live.taken) != here
