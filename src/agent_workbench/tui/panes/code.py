"""The retrieved code: each piece that is put before the model, why it came, what it costs, and its text on demand."""

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message

from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.piece_list import PieceList
from agent_workbench.views.code.code_pane import CodeState, CodeView

_USELESS_WITHOUT_PIECE = frozenset({"expand", "open", "pin", "drop"})
_USELESS_WITHOUT_TASK = frozenset({"add", "pin", "drop"})


class CodePane(PieceList):
    """Shows a `CodeView`. Posts what is pinned, dropped, looked at, and that something is to be added.

    `useless` are the actions that can do nothing now, so that nobody offers them.
    """

    BINDINGS = bindings(Scope.CODE, Scope.SCROLL)
    scope = Scope.CODE

    @dataclass
    class PinWanted(Message):
        """The user wants this piece to be kept before the model, or no longer."""

        place: str
        pinned: bool

    @dataclass
    class DropWanted(Message):
        """The user says that this piece does not matter."""

        place: str

    @dataclass
    class OpenWanted(Message):
        """The user wants to look at this piece with more room."""

        key: str

    class AddWanted(Message):
        """The user wants to put other code before the model."""

    def __init__(self) -> None:
        super().__init__(id="code")
        self.useless = _USELESS_WITHOUT_PIECE | _USELESS_WITHOUT_TASK

    def show(self, view: CodeView) -> None:
        """Show the pieces of code, and how far the index is."""
        self.show_title(f"5 {view.title}")
        progress = Content(view.progress)
        if self._border_subtitle != progress:
            self.border_subtitle = progress
        self.show_pieces(view.rows, empty=view.empty)
        without_piece = frozenset() if view.rows else _USELESS_WITHOUT_PIECE
        self.useless = without_piece | (frozenset() if view.going_on else _USELESS_WITHOUT_TASK)

    def action_pin(self) -> None:
        row = self.selected_piece
        if row is not None:
            self.post_message(self.PinWanted(row.place, row.standing is not CodeState.PINNED))

    def action_drop(self) -> None:
        row = self.selected_piece
        if row is not None:
            self.post_message(self.DropWanted(row.place))

    def action_open(self) -> None:
        row = self.selected_piece
        if row is not None:
            self.post_message(self.OpenWanted(row.key))

    def action_add(self) -> None:
        self.post_message(self.AddWanted())
