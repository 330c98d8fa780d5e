"""Fold of one proposal at the gate, the same for a run, a planning, a chat and an offer of notes."""

from typing import TypeVar

from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    ActionStarted,
    GateEvent,
    ProposalReplaced,
    WorkEvent,
)
from agent_workbench.core.proposals import ProposalStage, Verdict
from agent_workbench.core.state.chat import Chat
from agent_workbench.core.state.planning import NoteOffer, Planning
from agent_workbench.core.state.session_state import TaskRun

Proposing = TypeVar("Proposing", TaskRun, Planning, Chat, NoteOffer)


def fold_proposal(work: Proposing, event: GateEvent | WorkEvent) -> Proposing:
    """Return the work with its proposal, the stage of it and the decision about it; other events change nothing."""
    match event:
        case ActionProposed():
            return replace(work, proposal=event.proposal, stage=ProposalStage.WAITING, decision=None)
        case ProposalReplaced():
            return replace(work, proposal=event.proposal, stage=ProposalStage.WAITING)
        case ActionDecided(verdict=Verdict.APPROVE):
            return replace(work, decision=event, stage=ProposalStage.APPROVED)
        case ActionDecided():
            return replace(work, decision=event, stage=ProposalStage.REFUSED)
        case ActionStarted():
            return replace(work, stage=ProposalStage.RUNNING)
        case ActionFinished(result=ActionResult.UNKNOWN):
            return replace(work, stage=ProposalStage.UNKNOWN)
        case ActionFinished():
            return replace(work, stage=ProposalStage.FINISHED)
        case _:
            return work


def waiting_again(work: Proposing) -> Proposing:
    """Return the work with its proposal at the gate again if it was approved and is not begun."""
    if work.stage is not ProposalStage.APPROVED:
        return work
    return replace(work, stage=ProposalStage.WAITING, decision=None)
