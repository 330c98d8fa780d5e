"""Screen of the plan's tasks in the queue: a live tree, with dispatch and cancellation."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

from rich.cells import cell_len, set_cell_size
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.dispatch.preparation import Dispatch
from agent_workbench.subjects.dispatch.progress import PlanProgress, PlanWork, TaskProgress, TaskState
from agent_workbench.subjects.dispatch.view import GLYPHS, cost_text, dispatch_lines, notices, summary_line, why_text
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import ConfirmDialog, Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row, Span
from agent_workbench.views.blocks import Block, Entry, Tone

Answer = TypeVar("Answer")
EMPTY = "the plan has no tasks"
LOADING = "reading the plan and the queue"
RELOAD_SECONDS = 2.0
SHARE = 10
"""Least ratio of the time between two looks to that of a look."""
STATE_CELLS = 9
WIDE_CELLS = 100
HINTS = {
    "dispatch_plan": "dispatch",
    "open_task": "open",
    "cancel_task": "take back",
    "cancel_rest": "all",
    "plan_rest": "plan anew",
    "close_progress": "close",
}
ENDED = frozenset({TaskState.DONE, TaskState.FAILED})


class PlanRest:
    """Answer of the screen: the user wants a new plan for what is not over."""


class ProgressList(EntryList):
    """Shows `TaskProgress` as a tree, one of them selected."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.PROGRESS

    def __init__(self) -> None:
        super().__init__(id="progress-list")
        self._tasks: dict[str, TaskProgress] = {}
        self._name_cells = 0

    def show(self, tasks: Sequence[TaskProgress], *, empty: str) -> None:
        """Show these tasks; the selected one stays selected."""
        selected = self.selected_task
        self._tasks = {each.task.id: each for each in tasks}
        self._name_cells = max((2 * each.depth + cell_len(each.task.id) for each in tasks), default=0)
        # The entry holds all that is visible, so that a changed task is another entry.
        self.show_entries(tuple(Entry(each.task.id, (Block(repr(each)),)) for each in tasks), empty=empty)
        places = [each.task.id for each in tasks]
        if selected is not None and selected.task.id in places:
            self.select(places.index(selected.task.id))
        elif self.cursor < 0:
            self.select(0)

    @property
    def selected_task(self) -> TaskProgress | None:
        """The selected task."""
        return self._tasks.get(self.selected.key) if self.selected is not None else None

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        each = self._tasks[entry.key]
        glyph, tone = GLYPHS[each.state]
        name = set_cell_size(f"{'  ' * each.depth}{each.task.id}", self._name_cells)
        state = set_cell_size(_short(each.state), STATE_CELLS)
        spans: tuple[Span, ...] = ((f"{glyph} ", tone), (f"{name}  ", Tone.STRONG), (f"{state} ", tone))
        used = sum(cell_len(text) for text, _ in spans)
        words = sanitize_line(each.task.description, 400)
        yield Row((*spans, (_cut(words, width - used), Tone.PLAIN)), number)
        told = [text for text in (why_text(each), cost_text(each.cost, each.estimate)) if text]
        lines = [" · ".join(told)] if width >= WIDE_CELLS and told else told
        for line in lines:
            yield Row(((f"{'':<{used}}{_cut(line, width - used)}", Tone.DIM),), number)

    def action_expand(self) -> None:
        """Do nothing: a task is opened by a key."""


class PlanProgressScreen(Dialog["SessionRequest | PlanRest"]):
    """Returns how the session of a task is opened, `PlanRest` for a new plan, None if it was closed.

    No key waits for the queue: whatever is asked of it runs beside the screen.
    """

    BINDINGS = bindings(Scope.PROGRESS)

    def __init__(self, keymap: Keymap, clock: Clock, work: PlanWork) -> None:
        hints = hint_line((keymap.first(Scope.PROGRESS, action), label) for action, label in HINTS.items())
        super().__init__("Plan in the queue", hints, name="progress")
        self._clock = clock
        self._work = work
        self._said = ""
        self._busy = False
        self._rest_seconds = 0.0

    def body(self) -> Iterable[Widget]:
        return ProgressList(), Static("", id="progress-said", markup=False)

    def on_mount(self) -> None:
        self.query_one(ProgressList).focus()
        self._say(LOADING)
        self._reload()
        self.set_interval(RELOAD_SECONDS, self._reload_again)

    def _reload_again(self) -> None:
        self._rest_seconds -= RELOAD_SECONDS
        if self._rest_seconds <= 0:
            self._reload()

    def _reload(self) -> None:
        if not self._busy:
            self._busy = True
            self.run_worker(self._show_progress(), group="progress")

    async def _show_progress(self) -> None:
        begun = self._clock.monotonic_seconds()
        try:
            progress = await self._work.progress()
        except WorkbenchError as error:
            self._say(error_text(error))
        else:
            self._show(progress)
            if progress.unsettled:
                await self._tried(self._work.settle())
        finally:
            self._busy = False
            self._rest_seconds = SHARE * (self._clock.monotonic_seconds() - begun)

    def _show(self, progress: PlanProgress) -> None:
        for shown in self.query(ProgressList):
            shown.show(progress.tasks, empty=EMPTY)
        self._say("\n".join((*notices(progress), summary_line(progress), self._said)).strip())

    def _say(self, text: str) -> None:
        # An answer may come after the screen was closed.
        for said in self.query("#progress-said").results(Static):
            said.display = bool(text)
            said.update("\n".join(sanitize_line(line, 400) for line in text.split("\n")))

    def _tell(self, text: str) -> None:
        """Show what became of an action below the counts, until the next one."""
        self._said = text
        self._reload()

    def action_dispatch_plan(self) -> None:
        """Ask whether what is ready is to be queued; nothing is, before the answer."""
        self.run_worker(self._ask_dispatch(), group="dispatch", exclusive=True)

    async def _ask_dispatch(self) -> None:
        shown = await self._tried(self._work.prepare())
        if shown is None:
            return
        if not shown.tasks:
            left = "; ".join(f"{each.task}: {each.text}" for each in shown.left)
            self._tell(f"nothing is to be queued{f' ({left})' if left else ''}")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self._dispatch(shown), group="dispatch", exclusive=True)

        lines = tuple(dispatch_lines(shown))
        self.app.push_screen(ConfirmDialog("Dispatch to the queue", lines, self._clock, yes="queue them"), answered)

    async def _dispatch(self, shown: Dispatch) -> None:
        done = await self._tried(self._work.dispatch(shown))
        if done is not None:
            self._tell(f"queued: {', '.join(each.task.id for each in done.tasks)}")

    def action_cancel_task(self) -> None:
        """Ask whether the selected task is to be taken back."""
        task = self.query_one(ProgressList).selected_task
        if task is None or task.task.status is not TaskStatus.QUEUED:
            self._tell(f"{task.task.id} is not in the queue" if task is not None else "")
            return
        self._ask_cancel((task.task.id,), f"Take {task.task.id} back")

    def action_cancel_rest(self) -> None:
        """Ask whether all that is left is to be taken back."""
        self._ask_cancel((), "Take all tasks back that are queued or running")

    def _ask_cancel(self, wanted: Sequence[TaskId], title: str) -> None:
        async def cancel() -> None:
            done = await self._tried(self._work.cancel(wanted))
            if done is not None:
                left = [f"{each.task}: {each.text}" for each in done.left]
                self._tell("; ".join((f"taken back: {', '.join(done.tasks) or 'nothing'}", *left)))

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(cancel(), group="dispatch", exclusive=True)

        lines = ("What runs is stopped between two steps; its session is kept.", "The plan says blocked then.")
        self.app.push_screen(ConfirmDialog(title, lines, self._clock, yes="take back"), answered)

    async def _tried(self, work: Awaitable[Answer]) -> Answer | None:
        try:
            return await work
        except WorkbenchError as error:
            self._tell(error_text(error))
            return None

    def action_open_task(self) -> None:
        task = self.query_one(ProgressList).selected_task
        if task is None or not self.is_current:
            return
        if not task.session:
            self._tell(f"{task.task.id} has no session yet")
            return
        mode = OpenMode.REPLAY if task.state in ENDED else OpenMode.FOLLOW
        self.dismiss(SessionRequest(mode, task.session))

    def action_plan_rest(self) -> None:
        if self.is_current:
            self.dismiss(PlanRest())

    def action_close_progress(self) -> None:
        self.dismiss(None)


def _short(state: TaskState) -> str:
    """Return a state in one or two words."""
    return {TaskState.NO_CAPACITY: "no room", TaskState.HERE: "runs here"}.get(state, str(state))


def _cut(text: str, cells: int) -> str:
    if cells < 2:
        return ""
    return text if cell_len(text) <= cells else f"{set_cell_size(text, cells - 1)}…"
