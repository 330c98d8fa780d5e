"""Changes of the approval mode, with a list of what the old one approved, and of stored rules."""

from agent_workbench.core.approval_rules import RuleScope, StoredRule, mode_label, rule_problem
from agent_workbench.core.events import ApprovalChanged, ModeChanged, PauseChanged
from agent_workbench.core.history.past_actions import mode_approvals
from agent_workbench.core.intents import ChangeRule
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.settings import ApprovalMode
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.engine.runtime.session_context import SessionContext

LISTED = 5
"""Approved proposals that the notice names; the steps list all of them."""


async def change_mode(session: SessionContext, mode: ApprovalMode, shown: str | None = None) -> Outcome:
    """Enter a mode; the outcome's note says what the mode before it approved.

    *accept until done* also covers what waits already, if the user said so: the proposal whose hash is `shown`, or the
    first prompt if that is empty.
    """
    before, waiting, run = session.state.mode.mode, session.state.waiting, session.state.run
    until_done = mode is ApprovalMode.ACCEPT_UNTIL_DONE
    covers = waiting.id if until_done and waiting is not None and shown_sha(waiting) == shown else None
    sends = until_done and shown == "" and run is not None and run.awaits_send and session.state.reviews_context
    if mode is before:
        return Refused(f"the mode is {mode_label(mode)} already")
    approved = mode_approvals(session.state)
    await session.record(ModeChanged(mode, approved, covers))
    if sends:
        await session.record(PauseChanged(paused=False))
    return Accepted(_note(before, approved, short=waiting is not None))


async def leave_mode(session: SessionContext, only: ApprovalMode | None = None) -> None:
    """Return to `ask`, if `only` is the mode in force (None: from any); tell the user what the mode approved."""
    if session.state.mode.mode is ApprovalMode.ASK or only not in {None, session.state.mode.mode}:
        return
    outcome = await change_mode(session, ApprovalMode.ASK)
    if isinstance(outcome, Accepted) and outcome.note:
        session.publisher.notify(outcome.note)


def _note(mode: ApprovalMode, approved: tuple[str, ...], *, short: bool) -> str:
    """Return what a mode approved; in one line (`short`) while a proposal waits, which a notice would cover."""
    if not approved:
        return ""
    if short:
        return f"{mode_label(mode)} approved {counted_text(len(approved), 'proposal')}; the steps list them"
    more = len(approved) - LISTED
    lines = (*approved[:LISTED], *((f"and {more} more, in the steps",) if more > 0 else ()))
    return "\n".join((f"{mode_label(mode)} approved {counted_text(len(approved), 'proposal')}:", *lines))


async def change_rules(session: SessionContext, intent: ChangeRule) -> Outcome:
    """Add or revoke a rule: in its file first, then in the session; errors of the file are raised."""
    kept = StoredRule(intent.rule, intent.kept)
    if intent.always and (problem := rule_problem(intent.rule)):
        return Refused(f"that rule cannot be kept: {problem}")
    if (kept in session.state.rules) == intent.always:
        return Refused("that rule is kept already" if intent.always else "that rule is not kept any more")
    if intent.kept is not RuleScope.SESSION:
        change = session.ports.rules.keep if intent.always else session.ports.rules.revoke
        await change(kept)
    await session.record(ApprovalChanged(intent.rule.kind, intent.always, intent.rule, intent.kept))
    return Accepted()
