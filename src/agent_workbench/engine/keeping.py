"""Rules that the user keeps and revokes, and what they would have let through."""

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.events import ApprovalChanged
from agent_workbench.core.intents import AllowAlways
from agent_workbench.core.rules import Keeping, KeptRule, rule_fault
from agent_workbench.core.settings import GateKind
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.gating import spoken


async def change_rules(desk: Desk, intent: AllowAlways) -> None:
    """Keep a rule or revoke it: first where it is kept, then in the session; raise what its file raises."""
    kept = KeptRule(intent.rule, intent.kept)
    if intent.always and (fault := rule_fault(intent.rule)):
        desk.board.notify(f"that rule cannot be kept: {fault}")
        return
    if (kept in desk.state.rules) == intent.always:
        desk.board.notify("that rule is kept already" if intent.always else "that rule is not kept any more")
        return
    if intent.kept is not Keeping.SESSION:
        change = desk.ports.rules.keep if intent.always else desk.ports.rules.revoke
        await change(kept)
    await desk.record(ApprovalChanged(intent.rule.kind, intent.always, intent.rule, intent.kept))


async def look_back(desk: Desk, kind: GateKind) -> None:
    """Publish the past actions of a kind; say why where they cannot be read."""
    try:
        desk.board.show_past(kind, await desk.ports.rules.past(kind))
    except WorkbenchError as error:
        desk.board.notify(spoken(error))
