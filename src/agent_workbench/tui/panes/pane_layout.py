"""Layout of the panes: three columns, or one pane at a time where there is no room for more."""

from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.widgets.strips import StatusLine, TabStrip

WIDE_CELLS = 120
LEAST_CELLS = 60
LEAST_LINES = 16
COLUMNS = {"left": ("plan", "scratchpad"), "middle": ("steps", "advice"), "right": ("diff", "code")}
PANES = {
    "plan": "Plan",
    "steps": "Steps",
    "diff": "Diff",
    "scratchpad": "Scratchpad",
    "code": "Code",
    "advice": "Advice",
}
"""Names of the panes; the advice is shown only where there is some."""


class PaneLayout:
    """Shows the panes of a screen that have room. `front` is the one that is shown where only one has."""

    def __init__(self, screen: Screen[None]) -> None:
        self.front = "plan"
        self.zoomed = False
        self.advised = False
        self._waiting = ""
        self._screen = screen
        self._focused_before: Widget | None = None

    @property
    def single(self) -> bool:
        """True while only one pane has room."""
        return self.zoomed or self._screen.app.size.width < WIDE_CELLS

    @property
    def shown(self) -> tuple[str, ...]:
        """The panes that can be shown now."""
        return tuple(pane for pane in PANES if pane != "advice" or self.advised)

    def show_advice(self, *, advised: bool) -> None:
        """Show the pane of advice, or close it."""
        if advised == self.advised:
            return
        self.advised = advised
        if not advised and self.front == "advice":
            self.front = "diff"
        self.arrange()

    def give_room(self, waiting: str) -> None:
        """Make the column of the pane wide in which a proposal waits, the others narrow; empty: nothing waits."""
        if waiting != self._waiting:
            self._waiting = waiting
            self.arrange()

    def arrange(self) -> None:
        """Show the panes that have room in the current size."""
        screen, single = self._screen, self.single
        for column, panes in COLUMNS.items():
            for pane in panes:
                shown = not single or pane == self.front
                screen.query_one(f"#{pane}").display = shown and pane in self.shown
            container = screen.query_one(f"#{column}")
            container.display = not single or self.front in panes
            container.set_class(single, "-single")
            container.set_class(not single and self._waiting in panes, "-waits")
            container.set_class(not single and self.advised and "advice" in panes, "-advises")
        screen.query_one("#body").set_class(not single and bool(self._waiting), "-gate")
        tabs = screen.query_one(TabStrip)
        tabs.display = single
        tabs.show(self.front, self.shown)
        screen.query_one(PlanPane).show_details(detailed=self.zoomed)
        self._arrange_too_small()

    def _arrange_too_small(self) -> None:
        """Show a note instead of the panes in a terminal that is too small for any of them."""
        screen = self._screen
        width, height = screen.app.size
        small = width < LEAST_CELLS or height < LEAST_LINES
        note = screen.query_one("#too-small", Static)
        if small and not note.display:
            self._focused_before = screen.focused
        returns = note.display and not small
        note.display = small
        if small:
            note.update(f"{width}×{height} is too small for the workbench: {LEAST_CELLS}×{LEAST_LINES} is needed")
        for each in (screen.query_one("#body"), screen.query_one(StatusLine)):
            each.display = not small
        # A hidden pane loses the focus, and would get no keys when it is shown again.
        if returns and screen.focused is None:
            screen.set_focus(self._focused_before)

    def bring_forward(self, pane: str) -> None:
        """Show a pane, if only one has room."""
        if pane != self.front:
            self.front = pane
            self.arrange()

    def focus(self, pane: str) -> None:
        """Show a pane and give it the focus."""
        self.bring_forward(pane)
        self._screen.query_one(f"#{pane}").focus()

    def neighbour(self) -> str:
        """Return the pane after the focused one, empty for the bar, which comes after the last."""
        order = [*self.shown, ""]
        focused = self._screen.focused
        at = focused.id if focused is not None and focused.id in self.shown else ""
        return order[(order.index(at) + 1) % len(order)]

    def toggle_zoom(self) -> None:
        """Give one pane all the room, or give it back."""
        self.zoomed = not self.zoomed
        self.arrange()
