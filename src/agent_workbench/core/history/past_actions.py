"""Actions of past sessions, as far as a rule can be tried on them."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import ActionDecided, ActionProposed, Event, ProposalReplaced
from agent_workbench.core.ids import ProposalId, SessionId
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.rules.matching import rule_allows
from agent_workbench.core.settings import Permission, Rule


class PastAction(Struct, frozen=True):
    """What stood at the gate in a session, without its diff, and what was decided (None: nothing yet)."""

    session: SessionId
    proposal: Proposal
    verdict: Verdict | None = None
    by: str = ""


class PastActions(Struct, frozen=True):
    """Actions of one kind, the newest first, from so many sessions; `complete` unless there were too many to read."""

    actions: tuple[PastAction, ...] = ()
    sessions: int = 0
    complete: bool = True


def session_actions(session: SessionId, events: Iterable[Event], kind: Permission) -> tuple[PastAction, ...]:
    """Return what of a kind was decided in a session, the newest first; what was replaced counts as it ended up."""
    found: dict[ProposalId, PastAction] = {}
    for event in events:
        match event:
            case ActionProposed(proposal=proposal) | ProposalReplaced(proposal=proposal) if proposal.kind is kind:
                found[proposal.id] = PastAction(session, replace(proposal, diff=""))
            case ActionDecided(proposal_id=name) if name in found:
                found[name] = replace(found[name], verdict=event.verdict, by=event.by)
    return tuple(each for each in reversed(found.values()) if each.verdict is not None)


def would_be_allowed(rule: Rule, past: PastActions) -> tuple[PastAction, ...]:
    """Return the actions that the rule would have let through, the newest first."""
    return tuple(each for each in past.actions if rule_allows(rule, each.proposal))
