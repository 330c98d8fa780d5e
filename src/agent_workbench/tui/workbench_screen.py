"""The main screen: where the panes stand at which size, which of them has the focus, and what they are shown."""

from dataclasses import dataclass
from typing import cast

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.ports import Clock
from agent_workbench.core.views.answers import WRITE_DIFF, take_apart
from agent_workbench.core.views.code import view_code
from agent_workbench.core.views.diff import view_diff
from agent_workbench.core.views.gate import view_gate
from agent_workbench.core.views.plan import view_plan
from agent_workbench.core.views.replay import view_replay
from agent_workbench.core.views.scratchpad import view_scratchpad
from agent_workbench.core.views.status import view_status
from agent_workbench.core.views.steps import Transcript, view_steps
from agent_workbench.tui.keymap import Keymap, Scope, bindings
from agent_workbench.tui.panes.code import CodePane
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.scratchpad import ScratchpadPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.widgets.bar import Bar
from agent_workbench.tui.widgets.gate_bar import GateBar
from agent_workbench.tui.widgets.replay_bar import ReplayBar
from agent_workbench.tui.widgets.row_list import RowList
from agent_workbench.tui.widgets.status_line import StatusLine
from agent_workbench.tui.widgets.tab_strip import TabStrip

WIDE_CELLS = 120
LEAST_CELLS = 60
LEAST_LINES = 16
COLUMNS = {"left": ("plan", "scratchpad"), "middle": ("steps",), "right": ("diff", "code")}
PANES = {"plan": "Plan", "steps": "Steps", "diff": "Diff", "scratchpad": "Scratchpad", "code": "Code"}


class WorkbenchScreen(Screen[None]):
    """Panes, bar and status line; at less than 120 columns one pane at a time."""

    class Ready(Message):
        """The panes are there."""

    class AbortWanted(Message):
        """The user wants to give the task up."""

    class LeaveWanted(Message):
        """The user wants to leave."""

    @dataclass
    class HelpWanted(Message):
        """The user wants to know the keys, those of these scopes first."""

        scopes: tuple[Scope, ...]

    AUTO_FOCUS = "#plan"
    BINDINGS = bindings(Scope.EVERYWHERE)

    def __init__(self, clock: Clock, keymap: Keymap) -> None:
        super().__init__(id="workbench")
        self._clock = clock
        self._keymap = keymap
        self._transcript = Transcript()
        self._front = "plan"
        self._zoomed = False
        self._waiting = ""
        self._selected_task = ""
        self.update_shown: SessionUpdate | None = None

    def compose(self) -> ComposeResult:
        keys = {pane: self._keymap.first(Scope.EVERYWHERE, f"focus_{pane}") for pane in PANES}
        yield TabStrip(tuple((pane, keys[pane], name) for pane, name in PANES.items()))
        with Horizontal(id="body"):
            with Vertical(id="left", classes="column"):
                yield PlanPane()
                yield ScratchpadPane()
            with Vertical(id="middle", classes="column"):
                yield StepsPane()
            with Vertical(id="right", classes="column"):
                yield DiffPane()
                yield CodePane()
        yield GateBar(self._clock, self._keymap)
        yield ReplayBar(self._keymap)
        yield StatusLine()
        yield Static("", id="too-small", markup=False)

    def on_mount(self) -> None:
        self.query_one(ReplayBar).display = False
        self._arrange()
        self.post_message(self.Ready())

    def show(self, update: SessionUpdate) -> None:
        """Show an update in every part of the screen."""
        begins = update.state.unfinished and not (self.update_shown and self.update_shown.state.unfinished)
        self.update_shown = update
        steps = view_steps(update, self._transcript)
        self._transcript = steps.transcript
        self.query_one(PlanPane).show(view_plan(update.state))
        self.query_one(StepsPane).show(steps)
        diff = view_diff(update)
        self.query_one(DiffPane).show(diff)
        self.query_one(ScratchpadPane).show(view_scratchpad(update.state, self._selected_task))
        self.query_one(CodePane).show(view_code(update.state))
        self.query_one(StatusLine).show(view_status(update))
        self._show_bar(update)
        waits = "" if update.live.replay is not None else diff.proposal
        if waits and waits != self._waiting:
            self._go_to_gate()
        elif begins and self.focused is self.query_one(PlanPane):
            self.set_focus(self.bar)
        self._waiting = waits
        self._bring_forward(update, diff.proposal)

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

    @property
    def bar(self) -> Bar:
        """The bar that stands at the bottom."""
        replay = self.query_one(ReplayBar)
        return replay if replay.display else self.query_one(GateBar)

    def _go_to_gate(self) -> None:
        self._front = "diff"
        self._arrange()
        self.set_focus(self.query_one(GateBar))

    def _bring_forward(self, update: SessionUpdate, proposal: str) -> None:
        """Where one pane has room and the user is at the bar, show the one in which something happens."""
        if self._wide or self._zoomed or self.focused is not self.bar:
            return
        streaming = update.live.streaming
        writes = streaming is not None and take_apart(streaming.text).action == WRITE_DIFF
        if proposal or update.live.running is not None or writes:
            front = "diff"
        elif streaming is not None or update.live.replay is not None:
            front = "steps"
        else:
            return
        if front != self._front:
            self._front = front
            self._arrange()

    @property
    def _wide(self) -> bool:
        return self.size.width >= WIDE_CELLS

    def on_resize(self) -> None:
        self._arrange()

    def on_screen_resume(self) -> None:
        """Draw again what a dialogue covered, so that it counts as seen from now on."""
        self.bar.refresh()
        self.query_one(DiffPane).refresh()

    def _arrange(self) -> None:
        """Show the panes that have room."""
        single = self._zoomed or not self._wide
        for column, panes in COLUMNS.items():
            for pane in panes:
                self.query_one(f"#{pane}").display = not single or pane == self._front
            self.query_one(f"#{column}").display = not single or self._front in panes
        tabs = self.query_one(TabStrip)
        tabs.display = single
        tabs.show(self._front)
        self.set_class(single, "-single")
        self.query_one(PlanPane).show_details(detailed=single and self._zoomed)
        self._arrange_too_small()

    def _arrange_too_small(self) -> None:
        width, height = self.size
        small = 0 < width < LEAST_CELLS or 0 < height < LEAST_LINES
        note = self.query_one("#too-small", Static)
        note.display = small
        if small:
            note.update(f"{width}×{height} is too small for the workbench: {LEAST_CELLS}×{LEAST_LINES} is needed")
        for each in (self.query_one("#body"), self.query_one(StatusLine)):
            each.display = not small

    def focus_pane(self, pane: str) -> None:
        """Bring a pane to the front and give it the focus."""
        self._front = pane
        self._arrange()
        self.query_one(f"#{pane}").focus()

    def on_descendant_focus(self) -> None:
        """A pane that was clicked is the one in front from now on; the bar's hints depend on the focus."""
        self.bar.refresh()
        focused = self.focused
        if focused is not None and focused.id in PANES and focused.id != self._front:
            self._front = focused.id
            self._arrange()

    def node_of(self, scope: Scope) -> Widget:
        """Return what an action of a scope runs on."""
        places = {Scope.GATE: "gate", Scope.REPLAY: "replay", Scope.PLAN: "plan", Scope.STEPS: "steps"}
        places |= {Scope.DIFF: "diff", Scope.SCRATCHPAD: "scratchpad", Scope.CODE: "code"}
        if scope in places:
            return self.query_one(f"#{places[scope]}")
        return (self.focused or self.bar) if scope is Scope.SCROLL else self

    @property
    def scope(self) -> Scope:
        """The scope of what has the focus."""
        scope = getattr(self.focused, "scope", None)
        return scope if isinstance(scope, Scope) else self.bar.scope

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

    def action_focus_bar(self) -> None:
        if self._waiting:
            self._go_to_gate()
        self.bar.focus()

    def action_focus_following(self) -> None:
        self._step_focus(1)

    def action_focus_preceding(self) -> None:
        self._step_focus(-1)

    def _step_focus(self, by: int) -> None:
        order = [*PANES, "bar"]
        at = self.focused.id if self.focused is not None and self.focused.id in PANES else "bar"
        following = order[(order.index(at) + by) % len(order)]
        if following == "bar":
            self.bar.focus()
        else:
            self.focus_pane(following)

    def action_zoom(self) -> None:
        self._zoomed = not self._zoomed
        self._arrange()

    def action_abort(self) -> None:
        self.post_message(self.AbortWanted())

    def action_leave(self) -> None:
        self.post_message(self.LeaveWanted())

    def action_help(self) -> None:
        self.post_message(self.HelpWanted((self.scope,)))

    def on_bar_scroll(self, message: Bar.Scroll) -> None:
        """Scroll the pane that belongs to the bar: what waits, or the transcript of a replay."""
        single = self._zoomed or not self._wide
        pane = self._front if single else "steps" if self.query_one(ReplayBar).display else "diff"
        target = cast("RowList", self.query_one(f"#{pane}"))
        getattr(target, f"action_{message.action}")()

    def on_diff_pane_looked(self, message: DiffPane.Looked) -> None:
        self.query_one(GateBar).show_unseen(message.unseen if self.query_one(DiffPane).shown_proposal else 0)

    def on_gate_bar_more_wanted(self) -> None:
        self._go_to_gate()
        self.query_one(DiffPane).show_unseen()

    def on_tab_strip_chosen(self, message: TabStrip.Chosen) -> None:
        self.focus_pane(message.pane)

    def on_plan_pane_task_selected(self, message: PlanPane.TaskSelected) -> None:
        """Show the notes of the task that is selected."""
        self._selected_task = message.task
        if self.update_shown is not None:
            self.query_one(ScratchpadPane).show(view_scratchpad(self.update_shown.state, message.task))
