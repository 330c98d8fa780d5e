"""Approval rules in force: where each is kept, and how often it was used."""

from collections.abc import Callable, Iterable

from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.approval_rules import StoredRule
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.tui.keymap import Keymap, bindings
from agent_workbench.tui.keys import Scope
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.views.gate.rule_entries import NO_RULES, approvals_line, rule_entries
from agent_workbench.views.session_tabs import read_only_reason


class RuleList(EntryList):
    """The rules, one of them selected."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.RULES

    def action_expand(self) -> None:
        """Do nothing: rules cannot be expanded."""


class RulesScreen(Dialog[None]):
    """Shows the rules of the session; `revoke` asks about one of them."""

    BINDINGS = bindings(Scope.RULES)

    def __init__(self, keymap: Keymap, revoke: Callable[[StoredRule], None]) -> None:
        super().__init__("Rules", "", name="rules")
        self._keymap = keymap
        self._revoke = revoke
        self._fixed = ""
        self._state: SessionState | None = None

    def body(self) -> Iterable[Widget]:
        return Static("", id="rules-head", markup=False), RuleList(id="kept-rules")

    def on_mount(self) -> None:
        self.query_one(RuleList).focus()
        self._show()

    def show(self, update: SessionUpdate) -> None:
        """Show the rules as they are now."""
        self._fixed = read_only_reason(update.live)
        if update.state is not self._state:
            self._state = update.state
            if self.is_mounted:
                self._show()

    def _show(self) -> None:
        state = self._state
        if state is None:
            return
        rules = self.query_one(RuleList)
        rules.show_entries(rule_entries(state), empty=NO_RULES)
        if rules.cursor < 0:
            rules.select(0)
        self.query_one("#rules-head", Static).update(approvals_line(state))
        shown = {"revoke_rule": "revoke"} if state.rules and not self._fixed else {}
        labels = shown | {"close_rules": "close"}
        self.show_keys(hint_line((self._keymap.first(Scope.RULES, key), label) for key, label in labels.items()))

    def action_revoke_rule(self) -> None:
        cursor = self.query_one(RuleList).cursor
        rules = self._state.rules if self._state is not None else ()
        if self._fixed:
            self.show_keys(self._fixed)
        elif 0 <= cursor < len(rules):
            self._revoke(rules[cursor])

    def action_close_rules(self) -> None:
        self.dismiss(None)
