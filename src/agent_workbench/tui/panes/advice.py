"""Advice pane: the newest answer of a consultant, whose findings lead to lines of the diff."""

from dataclasses import dataclass

from textual.message import Message

from agent_workbench.core.checks.results import CodePlace
from agent_workbench.tui.keymap import bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.views.consultations import AdviceView


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
