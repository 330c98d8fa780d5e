"""Changes to stored approval rules."""

from agent_workbench.core.events import ApprovalChanged
from agent_workbench.core.intents import ChangeRule
from agent_workbench.core.intents.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.rules.matching import RuleScope, StoredRule, rule_problem
from agent_workbench.engine.runtime.session_context import SessionContext


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
