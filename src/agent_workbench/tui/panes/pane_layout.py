"""Where the panes stand: which of them have room at this size, which is in front, which has the focus."""

from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.tui.bars.bar import Bar
from agent_workbench.tui.bars.gate_bar import GateBar
from agent_workbench.tui.bars.replay_bar import ReplayBar
from agent_workbench.tui.bars.status_line import StatusLine
from agent_workbench.tui.bars.tab_strip import TabStrip
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.widgets.selectable_screen import WorkScreen

WIDE_CELLS = 120
LEAST_CELLS = 60
LEAST_LINES = 16
COLUMNS = {"left": ("plan", "scratchpad"), "middle": ("steps",), "right": ("diff", "code")}
PANES = {"plan": "Plan", "steps": "Steps", "diff": "Diff", "scratchpad": "Scratchpad", "code": "Code"}


class PaneScreen(WorkScreen[None]):
    """Three columns of panes with room, one pane without; a bar at the bottom at any size."""

    AUTO_FOCUS = "#plan"
    BINDINGS = bindings(Scope.EVERYWHERE)

    def __init__(self) -> None:
        super().__init__(name="workbench")
        self.front = "plan"
        self.zoomed = False
        self._focused_before: Widget | None = None

    @property
    def single(self) -> bool:
        """True while only one pane has room."""
        return self.zoomed or self.app.size.width < WIDE_CELLS

    @property
    def bar(self) -> Bar:
        """The bar that stands at the bottom."""
        replay = self.query_one(ReplayBar)
        return replay if replay.display else self.query_one(GateBar)

    def on_resize(self) -> None:
        self.arrange_panes()

    def arrange_panes(self) -> None:
        """Show the panes that have room."""
        single = self.single
        for column, panes in COLUMNS.items():
            for pane in panes:
                self.query_one(f"#{pane}").display = not single or pane == self.front
            place = self.query_one(f"#{column}")
            place.display = not single or self.front in panes
            place.set_class(single, "-single")
        tabs = self.query_one(TabStrip)
        tabs.display = single
        tabs.show(self.front)
        self.query_one(PlanPane).show_details(detailed=self.zoomed)
        self._arrange_too_small()

    def _arrange_too_small(self) -> None:
        width, height = self.app.size
        small = width < LEAST_CELLS or height < LEAST_LINES
        note = self.query_one("#too-small", Static)
        if small and not note.display:
            self._focused_before = self.focused
        returns = note.display and not small
        note.display = small
        if small:
            note.update(f"{width}×{height} is too small for the workbench: {LEAST_CELLS}×{LEAST_LINES} is needed")
        for each in (self.query_one("#body"), self.query_one(StatusLine)):
            each.display = not small
        # What is hidden loses the focus: no key would reach a pane that stands there again.
        if returns and self.focused is None:
            self.set_focus(self._focused_before)

    def bring_forward(self, pane: str) -> None:
        """Show a pane where only one has room."""
        if pane != self.front:
            self.front = pane
            self.arrange_panes()

    def focus_pane(self, pane: str) -> None:
        """Bring a pane to the front and give it the focus."""
        self.bring_forward(pane)
        self.query_one(f"#{pane}").focus()

    def on_descendant_focus(self) -> None:
        """A pane that was clicked is the one in front from now on; the bar's hints depend on the focus."""
        self.bar.refresh()
        focused = self.focused
        if focused is not None and focused.id in PANES:
            self.bring_forward(focused.id)

    def on_tab_strip_chosen(self, message: TabStrip.Chosen) -> None:
        self.focus_pane(message.pane)

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
            self.action_focus_bar()
        else:
            self.focus_pane(following)

    def action_zoom(self) -> None:
        self.zoomed = not self.zoomed
        self.arrange_panes()
