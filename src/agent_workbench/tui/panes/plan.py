"""Plan pane: the tasks of the plan with their states, and the actions that it asks for."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partialmethod

from msgspec.structs import replace
from textual.message import Message

from agent_workbench.core.ids import TaskId
from agent_workbench.tui.keys import KEYS, Scope, bindings
from agent_workbench.tui.panes.steps import SeenRows
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Entry
from agent_workbench.views.plan import PlanView, TaskRow

_ALWAYS = frozenset({"new_task", "edit_plan", "ask_plan"})
_ABOUT_A_TASK = frozenset(key.action for key in KEYS if key.scope is Scope.PLAN) - _ALWAYS
_ABOUT_A_PROPOSAL = frozenset({"take_task", "append_or_replace"})
_MERGE = frozenset({"merge", "pull_request"})
_NOT_PROPOSED = _MERGE | {"start_selected", "block", "ask_plan"}


class PlanAction(StrEnum):
    """Action on the plan or on its selected task."""

    START = "start"
    MERGE = "merge"
    PULL_REQUEST = "pull_request"
    MOVE_UP = "move_up"
    MOVE_DOWN = "move_down"
    NEW = "new"
    EDIT = "edit"
    EDIT_ALL = "edit_all"
    SHOW = "show"
    BLOCK = "block"
    ASK = "ask"
    TAKE = "take"
    REPLACE = "replace"


@dataclass
class Requested(Message, namespace="plan_pane"):
    """The user asks for an action at the selected task (None: there is none)."""

    action: PlanAction
    row: TaskRow | None


@dataclass
class TaskSelected(Message, namespace="plan_pane"):
    """A task was selected."""

    task: TaskId


class RowsSeen(Message, namespace="plan_pane"):
    """More of a proposed plan was on screen."""


class PlanPane(EntryList):
    """Shows a `PlanView`; posts actions on the selected task, which task is selected, and that rows were seen."""

    BINDINGS = bindings(Scope.PLAN, Scope.SCROLL)
    scope = Scope.PLAN
    label_cells = 2

    def __init__(self) -> None:
        super().__init__(id="plan")
        self.show_title("1 Plan")
        self._seen = SeenRows()
        self._view = PlanView("Plan", (), "", busy=False)
        self._detailed = False

    def show(self, view: PlanView) -> None:
        """Show the plan; the selected task stays selected wherever it moved."""
        new = view.proposal != self._view.proposal
        first = not self._view.rows or bool(view.proposal) != bool(self._view.proposal)
        selected = self.selected_row
        self._view = view
        self.show_title(f"1 {view.title}")
        self._show_rows()
        if new:
            self._seen.begin(self.rows)
            self.refresh()
            self.post_message(RowsSeen())
        moved = _index_of(view.rows, selected.id) if selected is not None else self.cursor
        if moved not in (-1, self.cursor):
            self.select(moved)
        if first and view.rows:
            self.select(_first_selected(view))

    @property
    def useless(self) -> frozenset[str]:
        """Actions that do nothing for the selected task; the gate bar gives no hints for them."""
        row = self.selected_row
        if row is None or row.proposed:
            return _ABOUT_A_TASK if row is None else _NOT_PROPOSED
        return _ABOUT_A_PROPOSAL | (_MERGE if row.open or row.running or row.blocked or row.merged else frozenset())

    def show_details(self, *, detailed: bool) -> None:
        """Show all details of each task, or a short form."""
        self._detailed = detailed
        self._show_rows()

    def _show_rows(self) -> None:
        entries = tuple(row.long if self._detailed else row.short for row in self._view.rows)
        self.show_entries(entries, empty=self._view.empty)

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        """Return the rows of a task; the cursor covers its title, not its details."""
        rows = list(super().rows_of(number, entry, width))
        if self._view.proposal:
            return self._seen.marked(number, rows)
        details = next((at for at, row in enumerate(rows) if at and not row.cells), len(rows))
        return [*rows[:details], *(replace(row, item=-1) for row in rows[details:])]

    def lay_out(self, width: int) -> None:
        super().lay_out(width)
        if self._seen.laid_out(self.rows):
            self.post_message(RowsSeen())

    @property
    def unseen(self) -> int:
        """Number of rows of a proposed plan that were not on screen yet."""
        return self._seen.missing

    def row_drawn(self, row: Row, left: int, width: int) -> None:
        """Count the row as seen, unless a dialog is above this screen."""
        if self.unseen and self.app.screen is self.screen and self._seen.drawn(row, left, width):
            self.call_later(self.post_message, RowsSeen())

    def show_unseen(self) -> None:
        """Scroll to the first row of a proposed plan that was not seen."""
        self.app.clear_notifications()  # they may cover it
        self.scroll_to(y=max(0, self._seen.first_missing(self.rows)), animate=False)

    def selection_changed(self) -> None:
        row = self.selected_row
        if row is not None:
            self.post_message(TaskSelected(row.id))

    def _request(self, action: PlanAction) -> None:
        if self.selected_row is not None or action in (PlanAction.NEW, PlanAction.EDIT_ALL, PlanAction.ASK):
            self.post_message(Requested(action, self.selected_row))

    action_start_selected = partialmethod(_request, PlanAction.START)
    action_merge = partialmethod(_request, PlanAction.MERGE)
    action_pull_request = partialmethod(_request, PlanAction.PULL_REQUEST)
    action_move_up = partialmethod(_request, PlanAction.MOVE_UP)
    action_move_down = partialmethod(_request, PlanAction.MOVE_DOWN)
    action_new_task = partialmethod(_request, PlanAction.NEW)
    action_edit_task = partialmethod(_request, PlanAction.EDIT)
    action_edit_plan = partialmethod(_request, PlanAction.EDIT_ALL)
    action_show_yaml = partialmethod(_request, PlanAction.SHOW)
    action_block = partialmethod(_request, PlanAction.BLOCK)
    action_ask_plan = partialmethod(_request, PlanAction.ASK)
    action_take_task = partialmethod(_request, PlanAction.TAKE)
    action_append_or_replace = partialmethod(_request, PlanAction.REPLACE)

    def action_expand(self) -> None:
        """Do nothing: a click does not start a task."""

    @property
    def selected_row(self) -> TaskRow | None:
        """The selected task."""
        return self._view.rows[self.cursor] if 0 <= self.cursor < len(self._view.rows) else None


def _index_of(rows: tuple[TaskRow, ...], task: TaskId) -> int:
    return next((number for number, row in enumerate(rows) if row.id == task), -1)


def _first_selected(view: PlanView) -> int:
    """Return the number of the running task, else of the first open one; a proposed plan begins at its first task."""
    for fits in ("proposed", "running", "open"):
        for number, row in enumerate(view.rows):
            if getattr(row, fits):
                return number
    return 0
