"""Code pane: the pieces of code in the prompt, with the reasons, the tokens and the text of each."""

from dataclasses import dataclass
from enum import StrEnum

from textual.content import Content
from textual.message import Message

from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.piece_list import PieceList
from agent_workbench.views.code import CodeRow, CodeView

_USELESS_WITHOUT_PIECE = frozenset({"expand", "open", "pin", "drop"})
_USELESS_WITHOUT_TASK = frozenset({"add", "pin", "drop"})


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
