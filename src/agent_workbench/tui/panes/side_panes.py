"""Panes at the side: a consultant's advice, the code in the prompt, and the notes of the task."""

from dataclasses import dataclass
from enum import StrEnum

from textual.content import Content
from textual.message import Message

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.core.ids import TaskId
from agent_workbench.tui.keys import Scope, bindings
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.piece_list import PieceList
from agent_workbench.views.code import CodeRow, CodeView
from agent_workbench.views.consultations import AdviceView
from agent_workbench.views.plan import ScratchpadView

_USELESS_WITHOUT_PIECE = frozenset({"expand", "open", "pin", "drop"})
_USELESS_WITHOUT_TASK = frozenset({"add", "pin", "drop"})


class AdvicePane(EntryList):
    """Shows an `AdviceView`; an answer that arrives is followed."""

    BINDINGS = bindings(Scope.ADVICE, Scope.SCROLL)
    scope = Scope.ADVICE
    follows = True

    @dataclass
    class PlaceWanted(Message):
        """The user goes to the line that a finding names."""

        place: CodePlace

    class Closed(Message):
        """The user closes the pane until the next consultation."""

    def __init__(self) -> None:
        super().__init__(id="advice")
        self.show_title("6 Advice")

    def show(self, view: AdviceView) -> None:
        """Show an answer, or what has come of it."""
        self.show_title(f"6 {view.title or 'Advice'}")
        self.follows = view.running
        self.show_entries(view.entries, view.unsettled, empty="no consultant was asked yet")

    def action_go_to_finding(self) -> None:
        """Go to the line of the selected finding; if none is selected, select the first one."""
        if self.selected is not None and self.selected.place is not None:
            self.post_message(self.PlaceWanted(self.selected.place))
        else:
            self._select_finding(1)

    def action_next_finding(self) -> None:
        self._select_finding(1)

    def action_previous_finding(self) -> None:
        self._select_finding(-1)

    def action_close_advice(self) -> None:
        self.post_message(self.Closed())

    def _select_finding(self, by: int) -> None:
        """Select the next finding with a place in a direction."""
        number = (self.cursor if self.cursor >= 0 or by > 0 else len(self.entries)) + by
        while 0 <= number < len(self.entries) and self.entries[number].place is None:
            number += by
        if 0 <= number < len(self.entries):
            self.select(number)
        else:
            self.notify("no other finding names a line", severity="warning")


class CodeAction(StrEnum):
    """Action on retrieved code."""

    PIN = "pin"
    DROP = "drop"
    OPEN = "open"
    ADD = "add"


class CodePane(PieceList):
    """Shows a `CodeView`. `useless` are actions that do nothing now; the gate bar gives no hints for them."""

    BINDINGS = bindings(Scope.CODE, Scope.SCROLL)
    scope = Scope.CODE

    @dataclass
    class Requested(Message):
        """The user asks for an action on the selected piece of code (None for `ADD`)."""

        action: CodeAction
        row: CodeRow | None = None

    def __init__(self) -> None:
        super().__init__(id="code")
        self.show_title("5 Retrieved code")
        self.useless = _USELESS_WITHOUT_PIECE | _USELESS_WITHOUT_TASK

    def show(self, view: CodeView) -> None:
        """Show the pieces of code, and the progress of the index."""
        self.show_title(f"5 {view.title}")
        progress = Content(view.progress)
        if self._border_subtitle != progress:
            self.border_subtitle = progress
        self.show_pieces(view.rows, empty=view.empty)
        without_piece = frozenset() if view.rows else _USELESS_WITHOUT_PIECE
        self.useless = without_piece | (frozenset() if view.task_running else _USELESS_WITHOUT_TASK)

    def action_pin(self) -> None:
        self._request(CodeAction.PIN)

    def action_drop(self) -> None:
        self._request(CodeAction.DROP)

    def action_open(self) -> None:
        self._request(CodeAction.OPEN)

    def action_add(self) -> None:
        self.post_message(self.Requested(CodeAction.ADD))

    def _request(self, action: CodeAction) -> None:
        row = self.selected_piece
        if row is not None:
            self.post_message(self.Requested(action, row))


class ScratchpadPane(EntryList):
    """Shows a `ScratchpadView`."""

    BINDINGS = bindings(Scope.SCRATCHPAD, Scope.SCROLL)
    scope = Scope.SCRATCHPAD

    @dataclass
    class EditWanted(Message):
        """The user edits the notes of a task, which are `text` now."""

        task: TaskId
        text: str

    def __init__(self) -> None:
        super().__init__(id="scratchpad")
        self.show_title("4 Scratchpad")
        self._view: ScratchpadView | None = None

    def show(self, view: ScratchpadView) -> None:
        """Show the notes."""
        self._view = view
        self.show_title(f"4 {view.title}")
        self.show_entries(view.entries, empty=view.empty)

    def action_edit_notes(self) -> None:
        if self._view is not None and self._view.task is not None:
            self.post_message(self.EditWanted(self._view.task, self._view.text))

    def action_expand(self) -> None:
        """Do nothing: notes cannot be expanded."""

    def action_line_down(self) -> None:
        self.scroll_relative(y=1, animate=False)

    def action_line_up(self) -> None:
        self.scroll_relative(y=-1, animate=False)

    def select(self, number: int) -> None:
        """Do nothing: notes cannot be selected."""
