"""Approvals by the mode in force since it was entered."""

from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    ModeChanged,
    ProposalReplaced,
    SessionConfigured,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.rules.modes import decided_in
from agent_workbench.core.settings import Permission
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
