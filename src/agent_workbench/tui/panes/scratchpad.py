"""Scratchpad pane: notes of a task, written by the model and the user."""

from dataclasses import dataclass

from textual.message import Message

from agent_workbench.core.ids import TaskId
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.views.plan import ScratchpadView


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
