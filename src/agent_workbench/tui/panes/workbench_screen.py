"""Main screen: panes, bars and status line of one session, and the views that updates bring to them."""

from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.state.file_pieces import OfferedPieces, offered_pieces
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.panes.diff_pane import DiffPane
from agent_workbench.tui.panes.pane_layout import PANES, PaneLayout
from agent_workbench.tui.panes.plan import PlanPane, TaskSelected
from agent_workbench.tui.panes.side_panes import AdvicePane, CodePane, ScratchpadPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.widgets.bar import Bar
from agent_workbench.tui.widgets.gate_bar import GateBar
from agent_workbench.tui.widgets.replay_bar import ReplayBar
from agent_workbench.tui.widgets.row_list import SelectableScreen
from agent_workbench.tui.widgets.strips import SessionStrip, StatusLine, TabStrip
from agent_workbench.views.code import shown_code_snapshots, view_code
from agent_workbench.views.consultations import view_advice
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import view_followed_gate, view_gate
from agent_workbench.views.gate.proposed_plan import view_proposed_plan
from agent_workbench.views.plan import view_plan, view_scratchpad
from agent_workbench.views.status import view_status
from agent_workbench.views.timeline import view_replay
from agent_workbench.views.transcript import transcript_snapshots, view_steps
from agent_workbench.views.transcript_blocks import EDITS, split_answer

if TYPE_CHECKING:
    from agent_workbench.core.ports.machine import Clock
    from agent_workbench.tui.widgets.row_list import RowList


WIDGET_IDS = {
    Scope.GATE: "gate",
    Scope.REPLAY: "replay",
    Scope.PLAN: "plan",
    Scope.STEPS: "steps",
    Scope.DIFF: "diff",
    Scope.SCRATCHPAD: "scratchpad",
    Scope.CODE: "code",
    Scope.ADVICE: "advice",
}

READY_EVENTS, READY_SECONDS = 256, 0.01
"""Number of recorded events that are prepared at once, and the pause for keys before the next ones."""


class WorkbenchScreen(SelectableScreen[None]):
    """Shows updates in panes, and moves the focus between them. What the user asks for is left to a subclass."""

    AUTO_FOCUS = "#plan"
    BINDINGS = bindings(Scope.EVERYWHERE)

    class Ready(Message):
        """The panes are on the screen."""

    def __init__(self, clock: "Clock", keymap: Keymap) -> None:
        super().__init__(name="workbench")
        self._clock = clock
        self._keymap = keymap
        self.panes = PaneLayout(self)
        self.updates = PaneUpdates(self, self.panes)

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
                yield AdvicePane()
            with Vertical(id="right"):
                yield DiffPane()
                yield CodePane()
        yield GateBar(self._clock, self._keymap, lambda: self.query_one(DiffPane).hunks.taking)
        yield ReplayBar(self._keymap)
        yield StatusLine()
        yield Static("", id="too-small", markup=False)

    def on_mount(self) -> None:
        self.query_one(ReplayBar).display = False
        self.panes.arrange()
        self.call_after_refresh(self.post_message, self.Ready())

    @property
    def bar(self) -> Bar:
        """The bar at the bottom."""
        return self.updates.bar

    @property
    def scope(self) -> Scope:
        """The scope of the focused widget."""
        scope = getattr(self.focused, "scope", None)
        return scope if isinstance(scope, Scope) else self.bar.scope

    def widget_of(self, scope: Scope) -> Widget:
        """Return the widget on which an action of a scope runs."""
        if scope in WIDGET_IDS:
            return self.query_one(f"#{WIDGET_IDS[scope]}")
        return (self.focused or self.bar) if scope is Scope.SCROLL else self

    def focus_pane(self, pane: str) -> None:
        """Show a pane and give it the focus."""
        self.panes.focus(pane)

    def on_resize(self) -> None:
        self.panes.arrange()

    def on_screen_resume(self) -> None:
        """Draw again what a dialog covered, so that it counts as seen from now on."""
        self.bar.refresh()
        self.query_one(DiffPane).refresh()

    def on_descendant_focus(self) -> None:
        """Bring a clicked pane to the front; the hints of the bar depend on the focus."""
        self.bar.refresh()
        focused = self.focused
        if focused is not None and focused.id in PANES:
            self.panes.bring_forward(focused.id)

    def on_tab_strip_chosen(self, message: TabStrip.Chosen) -> None:
        self.focus_pane(message.pane)

    def on_bar_scroll(self, message: Bar.Scroll) -> None:
        """Scroll the pane that belongs to the bar: the proposal, or the transcript of a replay."""
        layout = self.panes
        pane = (
            layout.front if layout.single else "steps" if self.query_one(ReplayBar).display else self.updates.gate_pane
        )
        getattr(cast("RowList", self.query_one(f"#{pane}")), f"action_{message.action}")()

    def on_diff_pane_looked(self) -> None:
        self.query_one(GateBar).show_unseen(self.updates.unseen)

    def on_plan_pane_rows_seen(self) -> None:
        self.query_one(GateBar).show_unseen(self.updates.unseen)

    def on_gate_bar_more_wanted(self) -> None:
        self.updates.go_to_gate()
        self.updates.show_unseen()

    def on_plan_pane_task_selected(self, message: TaskSelected) -> None:
        self.updates.show_task(message.task)

    def action_focus_plan(self) -> None:
        self.focus_pane("plan")

    def action_focus_steps(self) -> None:
        self.focus_pane("steps")

    def action_focus_diff(self) -> None:
        self.focus_pane("diff")

    def action_focus_scratchpad(self) -> None:
        self.focus_pane("scratchpad")

    def action_focus_code(self) -> None:
        self.focus_pane("code")

    def action_focus_advice(self) -> None:
        if self.panes.advised:
            self.focus_pane("advice")
        else:
            self.notify("no consultant was asked yet", severity="warning")

    def on_advice_pane_closed(self) -> None:
        self.updates.close_advice()
        self.action_focus_bar()

    def action_focus_bar(self) -> None:
        if self.updates.waits:
            self.updates.go_to_gate()
        self.bar.focus()

    async def action_stop(self) -> None:
        """Go back to the bar; there, stop what runs."""
        if self.bar.has_focus:
            self.bar.stop()
        else:
            self.action_focus_bar()

    def action_focus_following(self) -> None:
        pane = self.panes.neighbour()
        if pane:
            self.focus_pane(pane)
        else:
            self.action_focus_bar()

    def action_zoom(self) -> None:
        self.panes.toggle_zoom()


class PaneUpdates:
    """Shows updates in the panes of a screen, and moves the focus to what needs the user."""

    def __init__(self, screen: Screen[None], layout: PaneLayout) -> None:
        self.preparing = False
        self.newest: SessionUpdate | None = None
        self._screen = screen
        self._layout = layout
        self._transcripts = transcript_snapshots()
        self._code = shown_code_snapshots()
        self._waiting = ""
        self.gate_pane = "diff"
        self._selected_task = ""
        self.advice_wanted = False
        self._advice_closed = 0
        self._pieces: tuple[TaskRun, OfferedPieces] | None = None

    @property
    def bar(self) -> Bar:
        """The bar at the bottom."""
        replay = self._screen.query_one(ReplayBar)
        return replay if replay.display else self._screen.query_one(GateBar)

    @property
    def waits(self) -> bool:
        """True while a proposal waits for the user."""
        return bool(self._waiting)

    def show(self, update: SessionUpdate) -> None:
        """Show an update in every pane and bar; one that comes while the app ends finds the panes removed."""
        screen, before = self._screen, self.newest
        if not screen.query(StepsPane):
            return
        self.newest = update
        begins = update.state.at_work and not (before and before.state.at_work)
        opens_chat = update.state.in_chat and not (before and before.state.in_chat)
        if before is None or _plan_differs(before, update):
            plan = view_proposed_plan(update.state) if update.live.replay is None else None
            screen.query_one(PlanPane).show(plan or view_plan(update.state, update.live.no_plan, update.live.taken))
        steps = screen.query_one(StepsPane)
        steps.show(view_steps(update, self._transcripts))
        if begins and not steps.has_focus:
            steps.action_to_bottom_row()
        diff, pane = view_diff(update, self._pieces_of), screen.query_one(DiffPane)
        edits_here = pane.has_focus and pane.hunks.is_edited_by(diff)
        pane.show(diff)
        screen.query_one(ScratchpadPane).show(view_scratchpad(update.state, self._selected_task))
        self._show_code(update)
        self._show_advice(update)
        screen.query_one(StatusLine).show(view_status(update))
        self._show_bar(update)
        waits = "" if update.live.replay is not None else diff.proposal
        planned = _plans(update)
        arranges_here = planned and before is not None and _plans(before) and screen.query_one(PlanPane).has_focus
        self.gate_pane = "plan" if planned else "diff"
        self._layout.give_room(self.gate_pane if waits else "")
        if waits and waits != self._waiting and not edits_here and not arranges_here:
            self.go_to_gate()
        elif (begins or opens_chat) and screen.focused in {None, screen.query_one(PlanPane)}:
            screen.set_focus(self.bar)
        self._waiting = waits
        self._bring_forward_active(update, diff.proposal)

    def _pieces_of(self, run: TaskRun) -> OfferedPieces:
        """Return the pieces of a run, made once while an answer of it arrives."""
        if self._pieces is None or self._pieces[0] is not run:
            self._pieces = run, offered_pieces(run)
        return self._pieces[1]

    def _show_advice(self, update: SessionUpdate) -> None:
        """Show the newest consultation, and focus it once if the user asked for it."""
        view, pane = view_advice(update), self._screen.query_one(AdvicePane)
        pane.show(view)
        told = view.running or len(update.state.consultations) > self._advice_closed
        if pane.has_focus and not told:  # a hidden pane would pass the focus to any other one
            self._screen.set_focus(self.bar)
        self._layout.show_advice(advised=told)
        if self.advice_wanted and view.running:
            self.advice_wanted = False
            self._layout.focus("advice")

    def close_advice(self) -> None:
        """Close the pane of advice until the next consultation."""
        if self.newest is not None and self.newest.live.consulting is None:
            self._advice_closed = len(self.newest.state.consultations)
            self._layout.show_advice(advised=False)

    def _show_code(self, update: SessionUpdate) -> None:
        pane = self._screen.query_one(CodePane)
        useless = pane.useless
        pane.show(view_code(update.state, update.live.index, self._code))
        if pane.useless != useless:
            self.bar.refresh()

    def _show_bar(self, update: SessionUpdate) -> None:
        replay = view_replay(update)
        gate, bar = self._screen.query_one(GateBar), self._screen.query_one(ReplayBar)
        gate.show(view_gate(update) if update.live.followed is None else view_followed_gate(update))
        if replay is None:
            return
        bar.show(replay)
        if not bar.display:
            gate.display, bar.display = False, True
            self._screen.set_focus(bar)
            self._prepare()

    def _prepare(self) -> None:
        """Make the transcript of a whole recording in slices, so that no jump has to make much of it at once."""
        replay = self.newest.live.replay if self.newest is not None else None
        self.preparing = replay is not None and self._transcripts.reach(replay.recording.events, READY_EVENTS)
        if self.preparing:
            self._screen.set_timer(READY_SECONDS, self._prepare)

    def go_to_gate(self) -> None:
        """Show the proposal and focus the gate bar."""
        self._layout.bring_forward(self.gate_pane)
        self._screen.set_focus(self._screen.query_one(GateBar))

    @property
    def unseen(self) -> int:
        """Number of lines of the proposal that were not on screen; a proposed plan is in the plan pane."""
        return self._proposal_pane.unseen

    def show_unseen(self) -> None:
        """Show the first line of the proposal that was not on screen."""
        self._proposal_pane.show_unseen()

    @property
    def _proposal_pane(self) -> PlanPane | DiffPane:
        return self._screen.query_one(PlanPane) if self.gate_pane == "plan" else self._screen.query_one(DiffPane)

    def _bring_forward_active(self, update: SessionUpdate, proposal: str) -> None:
        """Show the pane in which something happens, if only one has room and the user is at the bar."""
        layout = self._layout
        if not layout.single or layout.zoomed or self._screen.focused is not self.bar:
            return
        streaming = update.live.streaming
        writes = streaming is not None and split_answer(streaming.text).action in EDITS
        if proposal and self.gate_pane == "plan":
            layout.bring_forward("plan")
        elif proposal or update.live.running is not None or writes:
            layout.bring_forward("diff")
        elif update.state.at_work or update.state.in_chat or update.live.replay is not None:
            layout.bring_forward("steps")
        elif not update.live.activity and (update.state.run or update.state.planning):
            layout.bring_forward("plan")

    def show_task(self, task: str) -> None:
        """Show the scratchpad of the selected task, and the actions that it has now."""
        self.bar.refresh()
        self._selected_task = task
        if self.newest is not None:
            self._screen.query_one(ScratchpadPane).show(view_scratchpad(self.newest.state, task))


def _plans(update: SessionUpdate) -> bool:
    """Return True if a proposed plan waits."""
    return update.live.replay is None and update.state.waiting is not None and update.state.waiting.plan is not None


def _plan_differs(before: SessionUpdate, now: SessionUpdate) -> bool:
    """Return True if the plan may have changed. Streamed tokens do not change it, and a long plan is slow to show."""
    here = (now.live.no_plan, now.live.taken)
    return before.state is not now.state or (before.live.no_plan, before.live.taken) != here
