"""Past actions of sessions, on which a rule can be tried, and approvals by the mode in force."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    Event,
    ModeChanged,
    ProposalReplaced,
    SessionConfigured,
)
from agent_workbench.core.ids import ProposalId, SessionId
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.rules.matching import rule_allows
from agent_workbench.core.rules.modes import decided_in
from agent_workbench.core.settings import Permission, Rule
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize_line

LINE_CHARS = 200


def mode_approvals(state: SessionState) -> tuple[str, ...]:
    """Return what the mode approved, one line for each proposal, oldest first."""
    by, approved = decided_in(state.mode.mode), list[str]()
    runs = (*state.past, state.run) if state.run is not None else state.past
    for run in runs:
        proposals: dict[ProposalId, Proposal] = {}
        for recorded in run.history:
            match recorded.event:
                case ActionProposed() | ProposalReplaced():
                    proposals[recorded.event.proposal.id] = recorded.event.proposal
                case ModeChanged() | SessionConfigured():
                    approved.clear()
                case ActionDecided(by=decider, proposal_id=proposal) if decider == by and proposal in proposals:
                    approved.append(_line(proposals[proposal]))
                case _:
                    pass
    return tuple(approved)


def _line(proposal: Proposal) -> str:
    match proposal.kind:
        case Permission.DIFF | Permission.KNOWLEDGE:
            subject = ", ".join(proposal.paths)
        case Permission.CHECK:
            subject = "; ".join(proposal.commands)
        case _:
            subject = proposal.text.strip().split("\n")[0]
    return sanitize_line(f"{proposal.kind} {subject}", LINE_CHARS)


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
