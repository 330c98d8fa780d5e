"""Past actions of sessions, on which an approval rule can be tried."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import ActionDecided, ActionProposed, Event, ProposalReplaced
from agent_workbench.core.ids import ProposalId, SessionId
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.rules.matching import rule_allows
from agent_workbench.core.settings import Permission, Rule


class PastAction(Struct, frozen=True):
    """A past proposal without its diff, and its verdict (None: undecided)."""

    session: SessionId
    proposal: Proposal
    verdict: Verdict | None = None
    by: str = ""


class PastActions(Struct, frozen=True):
    """Actions of one kind from `sessions` sessions, newest first; `complete`: no session was left out."""

    actions: tuple[PastAction, ...] = ()
    sessions: int = 0
    complete: bool = True


def session_actions(session: SessionId, events: Iterable[Event], kind: Permission) -> tuple[PastAction, ...]:
    """Return the decided proposals of a kind in a session, newest first; edited ones in their final form."""
    found: dict[ProposalId, PastAction] = {}
    for event in events:
        match event:
            case ActionProposed(proposal=proposal) | ProposalReplaced(proposal=proposal) if proposal.kind is kind:
                found[proposal.id] = PastAction(session, replace(proposal, diff=""))
            case ActionDecided(proposal_id=name) if name in found:
                found[name] = replace(found[name], verdict=event.verdict, by=event.by)
    return tuple(each for each in reversed(found.values()) if each.verdict is not None)


def would_be_allowed(rule: Rule, past: PastActions) -> tuple[PastAction, ...]:
    """Return the actions that the rule would have allowed, newest first."""
    return tuple(each for each in past.actions if rule_allows(rule, each.proposal))
