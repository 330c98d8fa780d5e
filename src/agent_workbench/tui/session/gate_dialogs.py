"""Dialogs about a pending proposal: a reason, an edit, a mode, rules in force, and what waits in all sessions."""

from functools import partial

from agent_workbench.core.approval_rules import (
    MODE_RULES,
    RULE_SCOPE_LABELS,
    StoredRule,
    mode_label,
    next_mode,
    rule_words,
)
from agent_workbench.core.inbox import InboxFilter, InboxItem
from agent_workbench.core.intents import ChangeMode, ChangeRule, EditProposal, ListPastActions, RejectProposal
from agent_workbench.core.proposals import Proposal, shown_sha
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.core.settings import ApprovalMode
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.tui.panes.diff_pane import DiffPane
from agent_workbench.tui.session.window import SessionWindow, UserDraft, is_read_only
from agent_workbench.tui.widgets.gate_bar import GateBar
from agent_workbench.views.consultations import grave_findings
from agent_workbench.views.gate.gate_bar import Waiting

NO_REASON = "no reason given"
REASON_CHARS = 1_000


class GateDialogs:
    """Dialogs about the pending proposal of a session."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def ask_reason(self, waiting: Waiting) -> None:
        """Ask why a proposal is rejected, and reject it; Esc rejects nothing."""
        from agent_workbench.tui.screens.dialog import ReasonDialog

        async def reject(reason: str | None) -> None:
            if reason is not None:
                await self._window.want(RejectProposal(waiting.proposal.id, reason.strip() or NO_REASON))

        # The reasons why hunks were left out are the most likely reasons to reject all of it, then what a review found.
        taking = self._window.workbench.query_one(DiffPane).hunks.taking
        reasons = dict.fromkeys(left.reason for left in taking.left if left.reason) if taking is not None else {}
        update = self._window.update_shown
        if not reasons and update is not None:
            found = grave_findings(update.state, waiting.proposal)
            reasons = dict.fromkeys(f"a review found: {each}" for each in found)
        text, about = "; ".join(reasons)[:REASON_CHARS], waiting.proposal.id
        dialog = ReasonDialog(f"Reject the {waiting.proposal.kind}", text=text, about=about)
        self._window.push_screen(dialog, reject)

    async def edit(self, waiting: Waiting, *, outside: bool = False) -> None:
        """Let the user edit a proposal; a text that the session refused is offered again."""
        from agent_workbench.tui.screens.dialog import EditDialog

        window, proposal = self._window, waiting.proposal
        if is_read_only(window):
            return
        draft = window.draft if window.draft is not None and window.draft.proposal == proposal else None

        async def replace(text: str | None) -> None:
            window.draft = None
            if text is not None and text != proposal.text:
                # If the text is accepted, another proposal waits; while this one does, the draft is not lost.
                window.draft = UserDraft(proposal, text)
                await window.want(EditProposal(proposal.id, text))

        text = draft.text if draft is not None else proposal.text
        if outside:
            written = await window.edit_outside(text, proposal.suffix)
            # Editors add a line break at the end, which is no change.
            await replace(written if written is None or text.endswith("\n") else written.removesuffix("\n"))
            return
        window.push_screen(
            EditDialog(
                f"Edit the {proposal.edits}",
                text,
                "It is shown again before it counts." if draft is None else "This is the text that was refused.",
                wraps=proposal.suffix == ".md",
            ),
            replace,
        )

    async def change_mode(self) -> None:
        """Enter the next approval mode; ask whether *accept until done* is to have what waits already."""
        update = self._window.update_shown
        if update is None:
            self._window.tell("the session is not open yet", "warning")
        elif not is_read_only(self._window):
            mode = next_mode(update.state.mode.mode)
            if mode is ApprovalMode.ACCEPT_UNTIL_DONE and (taken := self._taken_over(update.state, mode)):
                self._ask_to_take_over(mode, taken, update.state.waiting)
            else:
                await self._window.want(ChangeMode(mode))

    def _taken_over(self, state: SessionState, mode: ApprovalMode) -> str:
        """Return what waits and can be left to a mode, empty for nothing: only what was on screen as a whole."""
        run, waiting = state.run, state.waiting
        if waiting is None:
            return "the first prompt" if run is not None and run.awaits_send and state.reviews_context else ""
        has_rule = waiting.kind in {rule.kind for rule in MODE_RULES[mode]} and not waiting.special
        return f"the {waiting.kind}" if has_rule and self._window.workbench.query_one(GateBar).all_seen else ""

    def _ask_to_take_over(self, mode: ApprovalMode, taken: str, waiting: Proposal | None) -> None:
        """Ask whether a mode begins with what waits: who goes through the modes may be on the way back to *ask*."""
        from agent_workbench.tui.screens.dialog import ConfirmDialog

        async def enter(yes: bool | None) -> None:
            shown = shown_sha(waiting) if waiting is not None else ""
            await self._window.want(ChangeMode(mode, shown) if yes else ChangeMode(ApprovalMode.ASK))

        lines = (f"It begins with {taken} that waits, and asks no more before the merge.",)
        dialog = ConfirmDialog(f"{mode_label(mode).capitalize()}?", lines, self._window.clock, no="back to ask")
        self._window.push_screen(dialog, enter)


class RuleDialogs:
    """Dialogs about the approval rules of a session."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    def offer(self, waiting: Waiting) -> None:
        """Ask by which rule such proposals are approved from now on."""
        from agent_workbench.tui.screens.rules import RuleOfferDialog

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
        from agent_workbench.tui.screens.dialog import ConfirmDialog

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
        from agent_workbench.subjects.inbox.screen import InboxScreen

        window = self._window
        if window.screen is not window.workbench:
            return  # a key that was queued opens no second screen

        async def load() -> tuple[InboxItem, ...]:
            return tuple(await window.host.inbox(InboxFilter()))

        async def go(request: SessionRequest | None) -> None:
            if request is not None:
                await window.open_session(request)

        window.push_screen(InboxScreen(window.keymap, window.clock, load), go)
