"""Main screen: panes, bars and status line of one session."""

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
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.advice import AdvicePane
from agent_workbench.tui.panes.code import CodePane
from agent_workbench.tui.panes.diff import DiffPane
from agent_workbench.tui.panes.pane_layout import PANES, PaneLayout
from agent_workbench.tui.panes.pane_updates import PaneUpdates
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.plan_messages import TaskSelected
from agent_workbench.tui.panes.scratchpad import ScratchpadPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.terminal.selectable_screen import SelectableScreen

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

    def show(self, update: SessionUpdate) -> None:
        """Show an update in every part of the screen."""
        if not self.query(StepsPane):  # an update that comes while the app ends finds the panes removed
            return
        self.updates.show(update)

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
