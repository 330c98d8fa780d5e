"""The plan: which tasks there are and how they stand; from here one is started or merged."""

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


class PlanWish(StrEnum):
    """What the user wants of the plan's text."""

    UP = "up"
    DOWN = "down"
    NEW = "new"
    EDIT = "edit"
    EDIT_ALL = "edit_all"
    SHOW = "show"
    BLOCK = "block"


class PlanPane(EntryList):
    """Shows a `PlanView`; posts what is to be started, merged or changed, and which task is selected."""

    BINDINGS = bindings(Scope.PLAN, Scope.SCROLL)
    scope = Scope.PLAN
    label_cells = 2

    @dataclass
    class StartWanted(Message):
        """The user wants this task to be started."""

        task: TaskId

    @dataclass
    class MergeWanted(Message):
        """The user wants this task to be merged."""

        task: TaskId

    @dataclass
    class ChangeWanted(Message):
        """The user wants the plan changed or shown, at the selected task (None: there is none)."""

        wish: PlanWish
        row: TaskRow | None

    @dataclass
    class TaskSelected(Message):
        """Another task is selected."""

        task: TaskId

    def __init__(self) -> None:
        super().__init__(id="plan")
        self._view = PlanView("Plan", (), "", busy=False)
        self._detailed = False

    def show(self, view: PlanView) -> None:
        """Show the plan as it is now."""
        first = not self._view.rows
        selected = self.selected_row
        self._view = view
        self.show_title(f"1 {view.title}")
        self._show_rows()
        moved = _place(view.rows, selected.id) if selected is not None else self.cursor
        if moved not in (-1, self.cursor):  # the task that is selected stays so wherever it goes
            self.select(moved)
        if first and view.rows:
            running = next((number for number, row in enumerate(view.rows) if row.running), None)
            self.select(running if running is not None else _first_open(view.rows))

    @property
    def useless(self) -> frozenset[str]:
        """The actions that can do nothing for what is selected, so that nobody offers them."""
        row = self.selected_row
        if row is None:
            return _ABOUT_A_TASK
        return frozenset({"merge"}) if row.open or row.running or row.blocked else frozenset()

    def show_details(self, *, detailed: bool) -> None:
        """Show all that is known of each task, or a short form."""
        self._detailed = detailed
        self._show_rows()

    def _show_rows(self) -> None:
        entries = tuple(row.long if self._detailed else row.short for row in self._view.rows)
        self.show_entries(entries, empty=self._view.empty)

    def rows_of(self, number: int, entry: Entry, width: int) -> Iterable[Row]:
        """Return the rows of a task; its details are not marked with it."""
        rows = list(super().rows_of(number, entry, width))
        details = next((at for at, row in enumerate(rows) if at and not row.cells), len(rows))
        return [*rows[:details], *(replace(row, item=-1) for row in rows[details:])]

    def selection_changed(self) -> None:
        row = self.selected_row
        if row is not None:
            self.post_message(self.TaskSelected(row.id))

    def action_start_selected(self) -> None:
        row = self.selected_row
        if row is not None:
            self.post_message(self.StartWanted(row.id))

    def action_merge(self) -> None:
        row = self.selected_row
        if row is not None:
            self.post_message(self.MergeWanted(row.id))

    def action_move_up(self) -> None:
        self._want(PlanWish.UP)

    def action_move_down(self) -> None:
        self._want(PlanWish.DOWN)

    def action_new_task(self) -> None:
        self._want(PlanWish.NEW)

    def action_edit_task(self) -> None:
        self._want(PlanWish.EDIT)

    def action_edit_plan(self) -> None:
        self._want(PlanWish.EDIT_ALL)

    def action_show_yaml(self) -> None:
        self._want(PlanWish.SHOW)

    def action_block(self) -> None:
        self._want(PlanWish.BLOCK)

    def _want(self, wish: PlanWish) -> None:
        row = self.selected_row
        if row is not None or wish in (PlanWish.NEW, PlanWish.EDIT_ALL):
            self.post_message(self.ChangeWanted(wish, row))

    def action_expand(self) -> None:
        """A click on the selected task does nothing: starting one takes a key."""

    @property
    def selected_row(self) -> TaskRow | None:
        """The selected task."""
        return self._view.rows[self.cursor] if 0 <= self.cursor < len(self._view.rows) else None


def _place(rows: tuple[TaskRow, ...], task: TaskId) -> int:
    return next((number for number, row in enumerate(rows) if row.id == task), -1)


def _first_open(rows: tuple[TaskRow, ...]) -> int:
    return next((number for number, row in enumerate(rows) if row.open), 0)
