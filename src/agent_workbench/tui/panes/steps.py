"""Steps pane: the transcript of a session, growing at its end."""

from dataclasses import dataclass

from textual.message import Message

from agent_workbench.core.checks.failure_tree import CodePlace
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.views.transcript.transcript import StepsView


class StepsPane(EntryList):
    """Shows a `StepsView`; new entries are followed while the user is at the end."""

    BINDINGS = bindings(Scope.STEPS, Scope.SCROLL)
    scope = Scope.STEPS
    label_cells = 12
    follows = True

    @dataclass
    class PlaceWanted(Message):
        """The user goes to this line of a file."""

        place: CodePlace

    def __init__(self) -> None:
        super().__init__(id="steps")
        self.show_title("2 Steps")

    def show(self, view: StepsView) -> None:
        """Show the transcript and the entries that may still change."""
        self.show_title(f"2 {view.title}")
        self.show_entries(view.transcript.entries, view.unsettled, empty=view.empty)

    def action_go_to_failure(self) -> None:
        """Go to the place of the selected failure; if none is selected, select the first failure of the newest run."""
        if self.selected is not None and self.selected.place is not None:
            self.post_message(self.PlaceWanted(self.selected.place))
            return
        number = len(self.entries) - 1
        while number >= 0 and self.entries[number].place is None:
            number -= 1
        while number > 0 and self.entries[number - 1].place is not None:
            number -= 1
        if number < 0:
            self.notify("no check has failed yet", severity="warning")
        else:
            self.go_to(self.entries[number].key)

    def go_to(self, key: str) -> None:
        """Select an entry and scroll it to the top."""
        number = next((at for at, entry in enumerate(self.entries) if entry.key == key), None)
        if number is not None:
            self.select(number)
            self.scroll_to_selected()
