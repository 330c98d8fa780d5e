"""What a test does in one part of the workbench, in words: `bench.diff.hunk(2).leave("off by one")`.

All is done by the keys that a user would press. What can only be known is asked of the part's pane.
"""

from typing import TYPE_CHECKING, Generic, TypeVar

from textual.widgets import Input

from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import GoToEvent
from agent_workbench.core.patch.selection import PartialDiff
from agent_workbench.tui.panes.diff_pane import DiffPane
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.panes.steps import StepsPane
from agent_workbench.tui.widgets.bar import INDENT
from agent_workbench.tui.widgets.gate_bar import GateBar
from agent_workbench.tui.widgets.replay_bar import TIMELINE_ROW, ReplayBar

if TYPE_CHECKING:
    from textual.widget import Widget

    from tests.tui.driver import Driver

Pane = TypeVar("Pane", bound="Widget")


class Part(Generic[Pane]):
    """A pane or bar of the main screen and the key that goes there."""

    kind: type[Pane]
    key = "0"

    def __init__(self, bench: "Driver") -> None:
        self.bench = bench

    @property
    def pane(self) -> Pane:
        """The widget itself."""
        return self.bench.app.workbench.query_one(self.kind)

    @property
    def has_focus(self) -> bool:
        """True while keys go there."""
        return self.pane.has_focus

    async def press(self, *keys: str) -> "Driver":
        """Go there and press these keys."""
        return await self.bench.press(self.key, *keys)


class Hunk:
    """A hunk of the diff that waits, counted from 1."""

    def __init__(self, diff: "Diff", number: int) -> None:
        self.diff = diff
        self.number = number

    async def point(self, *keys: str) -> "Driver":
        """Put the cursor on its header, then press these keys."""
        return await self.diff.press("g", *["n"] * self.number, *keys)

    async def leave(self, reason: str = "") -> "Driver":
        """Leave it with a reason."""
        await self.point("space")
        self.diff.bench.screen.query_one(Input).value = reason
        return await self.diff.bench.press("enter")

    async def take(self) -> "Driver":
        """Take it again after it was left."""
        return await self.point("space")

    async def copy(self) -> str:
        """Copy it; return what is in the clipboard then."""
        await self.point("y")
        return self.diff.bench.app.clipboard


class Diff(Part[DiffPane]):
    """The diff pane."""

    kind = DiffPane
    key = "3"

    @property
    def taking(self) -> PartialDiff | None:
        """What would be applied, if anything is left."""
        return self.pane.hunks.taking

    @property
    def unseen(self) -> int:
        """How many lines were not on screen yet."""
        return self.pane.unseen

    def hunk(self, number: int) -> Hunk:
        """Return a hunk, counted from 1."""
        return Hunk(self, number)


class Gate(Part[GateBar]):
    """The gate bar."""

    kind = GateBar

    async def approve(self) -> "Driver":
        """Look at what waits until all of it was on screen, then approve it."""
        await self.bench.look()
        while self.bench.diff.unseen:
            await self.press("a")
            await self.bench.look()
        return await self.press("a")

    async def reject(self, reason: str) -> "Driver":
        """Refuse what waits with a reason."""
        await self.press("r")
        self.bench.screen.query_one(Input).value = reason
        return await self.bench.press("enter")


class PlanPart(Part[PlanPane]):
    """The plan."""

    kind = PlanPane
    key = "1"

    async def select(self, task: str) -> "Driver":
        """Go to a task."""
        ids = [row.id for row in self.pane._view.rows]
        return await self.press("g", *["j"] * ids.index(TaskId(task)))

    async def start(self, task: str) -> "Driver":
        """Start a task."""
        await self.select(task)
        return await self.bench.press("enter")

    async def block(self, task: str, reason: str) -> "Driver":
        """Keep a task from being started."""
        await self.select(task)
        await self.bench.press("b")
        self.bench.screen.query_one(Input).value = reason
        return await self.bench.press("enter")


class StepEntry:
    """An entry of the steps, counted from 1."""

    def __init__(self, steps: "Steps", number: int) -> None:
        self.steps = steps
        self.number = number

    async def expand(self) -> "Driver":
        """Show all of it."""
        await self.steps.press()
        self.steps.pane.select(self.number - 1)
        return await self.steps.bench.press("enter")


class Steps(Part[StepsPane]):
    """The steps."""

    kind = StepsPane
    key = "2"

    def entry(self, number: int) -> StepEntry:
        """Return an entry, counted from 1."""
        return StepEntry(self, number)

    async def go_to_failure(self) -> "Driver":
        """Go to the newest failure, or from the selected one to its place."""
        return await self.press("f")


class Replay(Part[ReplayBar]):
    """The replay bar."""

    kind = ReplayBar

    async def jump(self, *keys: str) -> "Driver":
        """Jump by these keys."""
        return await self.press(*keys)

    async def seek(self, cell: int) -> GoToEvent:
        """Click a cell of the timeline; return where that leads."""
        await self.bench.pilot.mouse_down(ReplayBar, offset=(INDENT + cell, TIMELINE_ROW + 1))
        await self.bench.pilot.mouse_up(ReplayBar, offset=(INDENT + cell, TIMELINE_ROW + 1))
        await self.bench.idle()
        intent = self.bench.session.intents[-1]
        assert isinstance(intent, GoToEvent)
        return intent
