"""Approval rules: those in force, and the offer of one with what it would have approved."""

from collections.abc import Awaitable, Callable, Iterable

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from agent_workbench.core.approval_rules import RuleScope, StoredRule, offered_rules
from agent_workbench.core.history.past_actions import PastActions
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Outcome, PastActionsFound, Refused
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList
from agent_workbench.tui.widgets.row_list import Readiness, queued_seconds
from agent_workbench.views.gate.rule_entries import (
    NO_RULES,
    approvals_line,
    offer_entries,
    past_entry,
    rule_entries,
    scope_entry,
)
from agent_workbench.views.sessions import read_only_reason

PLACES = tuple(RuleScope)


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


class OfferList(EntryList):
    """List of the offered rules, with details of the selected one below."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.ALLOW
    label_cells = 7

    class Selected(Message):
        """A rule was selected."""

    def selection_changed(self) -> None:
        self.post_message(self.Selected())

    def action_expand(self) -> None:
        """Do nothing: rules cannot be expanded."""


class RuleOfferDialog(Dialog[StoredRule | None]):
    """Returns the rule to keep, None for none. A rule counts only after it was on screen for a moment."""

    BINDINGS = bindings(Scope.ALLOW)

    def __init__(
        self, proposal: Proposal, clock: Clock, keymap: Keymap, look_back: Callable[[], Awaitable[Outcome]]
    ) -> None:
        super().__init__("Let this through from now on?", "", name="allow")
        self._proposal = proposal
        self._rules = offered_rules(proposal)
        self._keymap = keymap
        self._place = 0
        self._look_back = look_back
        self._past: PastActions | None = None
        self._readiness = Readiness(clock)
        self._pressed_at: float | None = None

    def body(self) -> Iterable[Widget]:
        return (OfferList(id="offers"),)

    def on_mount(self) -> None:
        offers = self.query_one(OfferList)
        offers.show_entries(offer_entries(self._rules, 0))
        offers.select(0)
        offers.focus()
        self._show()
        self.run_worker(self._load_past(), group="past")

    async def _load_past(self) -> None:
        outcome = await self._look_back()
        if isinstance(outcome, PastActionsFound):
            self._past = outcome.past
            self._show()
        elif isinstance(outcome, Refused):
            self.app.notify(sanitize(outcome.reason, limit_chars=2000), markup=False)

    def show(self, update: SessionUpdate) -> None:
        """Close the dialog if the proposal was decided meanwhile."""
        if self.is_current and update.state.waiting != self._proposal:
            self.dismiss(None)

    def _chosen(self) -> StoredRule:
        return StoredRule(self._rules[max(0, self.query_one(OfferList).cursor)], PLACES[self._place])

    def _show(self) -> None:
        chosen = self._chosen()
        below = (scope_entry(chosen.kept), past_entry(chosen.rule, self._past))
        offers = self.query_one(OfferList)
        offers.show_entries(offer_entries(self._rules, max(0, offers.cursor)), below)
        self.show_keys(self._hints())
        self.call_after_refresh(self._readiness.painted, repr(chosen))

    def _hints(self) -> str:
        key = {name: self._keymap.first(Scope.ALLOW, name) for name in ("keep_rule", "next_place", "close_offer")}
        which = [("↑ ↓", "which rule")] if len(self._rules) > 1 else []
        others = [*which, (key["next_place"], "for how long and whom"), (key["close_offer"], "ask again next time")]
        return f"keep it, and let through what waits: {key['keep_rule']}\n{hint_line(others)}"

    def on_offer_list_selected(self) -> None:
        self._show()

    def on_key(self, event: events.Key) -> None:
        """Remember when the key was pressed; Textual looks up bindings after this."""
        self._pressed_at = event.time

    def action_next_place(self) -> None:
        self._turn(1)

    def action_previous_place(self) -> None:
        self._turn(-1)

    def _turn(self, by: int) -> None:
        self._place = (self._place + by) % len(PLACES)
        self._show()

    def action_keep_rule(self) -> None:
        chosen = self._chosen()
        queued = queued_seconds(self._pressed_at)
        if self._readiness.ready(repr(chosen), queued):
            self.dismiss(chosen)
        else:
            self.show_keys(f"too quick: read it first\n{self._hints().splitlines()[1]}")

    def action_close_offer(self) -> None:
        self.dismiss(None)
