"""What the workbench asks and shows about rules, and the intents that come of it."""

from functools import partial
from typing import TYPE_CHECKING

from agent_workbench.core.intents import ChangeRule, ListPastActions
from agent_workbench.core.rules.rule_text import rule_words
from agent_workbench.core.rules.stored_rules import RULE_SCOPE_LABELS, StoredRule
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.gate.gate_bar import Waiting

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab


async def offer_rules(tab: "SessionTab", waiting: Waiting) -> None:
    """Ask by which rule what waits shall be let through from now on."""
    from agent_workbench.tui.dialogs.rule_offer import AllowScreen

    update = tab.update_shown
    if update is None:
        return

    async def keep(chosen: StoredRule | None) -> None:
        if chosen is not None:
            await tab.want(ChangeRule(chosen.rule, chosen.kept))

    past = partial(tab.ask, ListPastActions(waiting.proposal.kind))
    screen = AllowScreen(waiting.proposal, tab.clock, tab.keymap, past)
    screen.show(update)
    tab.push_screen(screen, keep)


def show_rules(tab: "SessionTab") -> None:
    """Show the rules that count."""
    from agent_workbench.tui.screens.rules import RulesScreen

    update = tab.update_shown
    if update is not None:
        screen = RulesScreen(tab.keymap, partial(confirm_revoking, tab))
        screen.show(update)
        tab.push_screen(screen)


def confirm_revoking(tab: "SessionTab", kept: StoredRule) -> None:
    """Ask whether a rule shall not count any more."""
    from agent_workbench.tui.dialogs.confirm import ConfirmScreen

    async def revoke(yes: bool | None) -> None:
        if yes:
            await tab.want(ChangeRule(kept.rule, kept.kept, always=False))

    lines = (sanitize_line(rule_words(kept.rule), 600), "", f"It is kept for {RULE_SCOPE_LABELS[kept.kept]}.")
    tab.push_screen(ConfirmScreen("Revoke this rule?", lines, tab.clock, yes="revoke", no="keep"), revoke)
