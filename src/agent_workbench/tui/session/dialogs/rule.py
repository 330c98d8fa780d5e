"""Dialogs about approval: what waits in all sessions of the repository, and rules in force."""

from functools import partial

from agent_workbench.core.inbox import InboxFilter, InboxItem
from agent_workbench.core.intents import ChangeRule, ListPastActions
from agent_workbench.core.rules.matching import RULE_SCOPE_LABELS, StoredRule, rule_words
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.session.window import SessionWindow
from agent_workbench.views.gate.gate_bar import Waiting


class RuleDialogs:
    """Dialogs about the approval rules of a session."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def offer(self, waiting: Waiting) -> None:
        """Ask by which rule such proposals are approved from now on."""
        from agent_workbench.tui.dialogs.rule_offer import RuleOfferDialog

        window = self._window
        update = window.update_shown
        if update is None:
            return

        async def keep(chosen: StoredRule | None) -> None:
            if chosen is not None:
                await window.want(ChangeRule(chosen.rule, chosen.kept))

        past = partial(window.ask, ListPastActions(waiting.proposal.kind))
        screen = RuleOfferDialog(waiting.proposal, window.clock, window.keymap, past)
        screen.show(update)
        window.push_screen(screen, keep)

    def show(self) -> None:
        """Show the rules in force."""
        from agent_workbench.tui.screens.rules import RulesScreen

        update = self._window.update_shown
        if update is not None:
            screen = RulesScreen(self._window.keymap, self._confirm_revoking)
            screen.show(update)
            self._window.push_screen(screen)

    def _confirm_revoking(self, kept: StoredRule) -> None:
        from agent_workbench.tui.dialogs.dialog import ConfirmDialog

        async def revoke(yes: bool | None) -> None:
            if yes:
                await self._window.want(ChangeRule(kept.rule, kept.kept, always=False))

        lines = (sanitize_line(rule_words(kept.rule), 600), "", f"It is kept for {RULE_SCOPE_LABELS[kept.kept]}.")
        dialog = ConfirmDialog("Revoke this rule?", lines, self._window.clock, yes="revoke", no="keep")
        self._window.push_screen(dialog, revoke)


class InboxDialogs:
    """Dialogs about proposals of any session of the repository."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def show(self) -> None:
        """List what waits; a session that is chosen opens in a tab."""
        from agent_workbench.tui.screens.inbox import InboxScreen

        window = self._window
        if window.screen is not window.workbench:
            return  # a key that was queued opens no second screen

        async def load() -> tuple[InboxItem, ...]:
            return tuple(await window.host.inbox(InboxFilter()))

        async def go(request: SessionRequest | None) -> None:
            if request is not None:
                await window.open_session(request)

        window.push_screen(InboxScreen(window.keymap, window.clock, load), go)
