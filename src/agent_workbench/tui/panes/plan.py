"""Plan pane: the tasks of the plan and their states."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace
from textual.message import Message

from agent_workbench.core.ids import TaskId
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import KEYS, Scope
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.rows import Row
from agent_workbench.views.blocks import Entry
from agent_workbench.views.plan import PlanView, TaskRow

_ABOUT_A_TASK = frozenset(key.action for key in KEYS if key.scope is Scope.PLAN) - {"new_task", "edit_plan"}


class PlanAction(StrEnum):
    """Action on the plan or on its selected task."""

    START = "start"
    MERGE = "merge"
    MOVE_UP = "move_up"
    MOVE_DOWN = "move_down"
    NEW = "new"
    EDIT = "edit"
    EDIT_ALL = "edit_all"
    SHOW = "show"
    BLOCK = "block"


class PlanPane(EntryList):
    """Shows a `PlanView`; posts actions on the selected task, and which task is selected."""

    BINDINGS = bindings(Scope.PLAN, Scope.SCROLL)
    scope = Scope.PLAN
    label_cells = 2

    @dataclass
    class Requested(Message):
        """The user asks for an action at the selected task (None: there is none)."""

        action: PlanAction
        row: TaskRow | None

    @dataclass
    class TaskSelected(Message):
        """A task was selected."""

        task: TaskId

    def __init__(self) -> None:
        super().__init__(id="plan")
        self.show_title("1 Plan")
        self._view = PlanView("Plan", (), "", busy=False)
        self._detailed = False

    def show(self, view: PlanView) -> None:
        """Show the plan; the selected task stays selected wherever it moved."""
        first = not self._view.rows
        selected = self.selected_row
        self._view = view
        self.show_title(f"1 {view.title}")
        self._show_rows()
        moved = _index_of(view.rows, selected.id) if selected is not None else self.cursor
        if moved not in (-1, self.cursor):
            self.select(moved)
        if first and view.rows:
            running = next((number for number, row in enumerate(view.rows) if row.running), None)
            self.select(running if running is not None else _first_open(view.rows))

    @property
    def useless(self) -> frozenset[str]:
        """Actions that do nothing for the selected task; the gate bar gives no hints for them."""
        row = self.selected_row
        if row is None:
            return _ABOUT_A_TASK
        return frozenset({"merge"}) if row.open or row.running or row.blocked else frozenset()

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
        details = next((at for at, row in enumerate(rows) if at and not row.cells), len(rows))
        return [*rows[:details], *(replace(row, item=-1) for row in rows[details:])]

    def selection_changed(self) -> None:
        row = self.selected_row
        if row is not None:
            self.post_message(self.TaskSelected(row.id))

    def action_start_selected(self) -> None:
        self._request(PlanAction.START)

    def action_merge(self) -> None:
        self._request(PlanAction.MERGE)

    def action_move_up(self) -> None:
        self._request(PlanAction.MOVE_UP)

    def action_move_down(self) -> None:
        self._request(PlanAction.MOVE_DOWN)

    def action_new_task(self) -> None:
        self._request(PlanAction.NEW)

    def action_edit_task(self) -> None:
        self._request(PlanAction.EDIT)

    def action_edit_plan(self) -> None:
        self._request(PlanAction.EDIT_ALL)

    def action_show_yaml(self) -> None:
        self._request(PlanAction.SHOW)

    def action_block(self) -> None:
        self._request(PlanAction.BLOCK)

    def _request(self, action: PlanAction) -> None:
        row = self.selected_row
        if row is not None or action in (PlanAction.NEW, PlanAction.EDIT_ALL):
            self.post_message(self.Requested(action, row))

    def action_expand(self) -> None:
        """Do nothing: a click does not start a task."""

    @property
    def selected_row(self) -> TaskRow | None:
        """The selected task."""
        return self._view.rows[self.cursor] if 0 <= self.cursor < len(self._view.rows) else None


def _index_of(rows: tuple[TaskRow, ...], task: TaskId) -> int:
    return next((number for number, row in enumerate(rows) if row.id == task), -1)


def _first_open(rows: tuple[TaskRow, ...]) -> int:
    return next((number for number, row in enumerate(rows) if row.open), 0)
