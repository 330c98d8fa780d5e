"""Changes to stored approval rules, and the past actions on which a rule is tried."""

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.events import ApprovalChanged
from agent_workbench.core.intents import AllowAlways
from agent_workbench.core.rules.matching import rule_problem
from agent_workbench.core.rules.stored_rules import RuleScope, StoredRule
from agent_workbench.core.settings import Permission
from agent_workbench.engine.approval.proposals import spoken
from agent_workbench.engine.runtime.session_context import SessionContext


async def change_rules(session: SessionContext, intent: AllowAlways) -> None:
    """Add or revoke a rule: in its file first, then in the session; errors of the file are raised."""
    kept = StoredRule(intent.rule, intent.kept)
    if intent.always and (fault := rule_problem(intent.rule)):
        session.publisher.notify(f"that rule cannot be kept: {fault}")
        return
    if (kept in session.state.rules) == intent.always:
        session.publisher.notify("that rule is kept already" if intent.always else "that rule is not kept any more")
        return
    if intent.kept is not RuleScope.SESSION:
        change = session.ports.rules.keep if intent.always else session.ports.rules.revoke
        await change(kept)
    await session.record(ApprovalChanged(intent.rule.kind, intent.always, intent.rule, intent.kept))


async def show_past_actions(session: SessionContext, kind: Permission) -> None:
    """Publish the past actions of a kind, or the reason why they cannot be read."""
    try:
        session.publisher.show_past(kind, await session.ports.rules.past(kind))
    except WorkbenchError as error:
        session.publisher.notify(spoken(error))
