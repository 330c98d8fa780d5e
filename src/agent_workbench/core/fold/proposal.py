"""Fold of the gate: its proposal, how far it came, and the decision; the same for every kind of work."""

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
from agent_workbench.core.state.work import Gate, Work

AnyWork = TypeVar("AnyWork", bound=Work)


def fold_proposal(work: AnyWork, event: GateEvent | WorkEvent) -> AnyWork:
    """Return the work with its gate after an event; events that are not about its proposal change nothing."""
    gate = _moved(work.gate, event)
    return work if gate is work.gate else replace(work, gate=gate)


def _moved(gate: Gate, event: GateEvent | WorkEvent) -> Gate:
    match event:
        case ActionProposed():
            return Gate(event.proposal, ProposalStage.WAITING)
        case ProposalReplaced():
            return replace(gate, proposal=event.proposal, stage=ProposalStage.WAITING)
        case ActionDecided():
            approved = event.verdict is Verdict.APPROVE
            return replace(gate, decision=event, stage=ProposalStage.APPROVED if approved else ProposalStage.REFUSED)
        case ActionStarted():
            return replace(gate, stage=ProposalStage.RUNNING)
        case ActionFinished():
            unknown = event.result is ActionResult.UNKNOWN
            return replace(gate, stage=ProposalStage.UNKNOWN if unknown else ProposalStage.FINISHED)
        case _:
            return gate


def staged(work: AnyWork, stage: ProposalStage) -> AnyWork:
    """Return the work with its proposal in another stage."""
    return replace(work, gate=replace(work.gate, stage=stage))


def waiting_again(work: AnyWork) -> AnyWork:
    """Return the work whose proposal waits again, undecided."""
    return replace(work, gate=Gate(work.gate.proposal, ProposalStage.WAITING))


def without_leave(work: AnyWork) -> AnyWork:
    """Return the work with its proposal at the gate again if it was approved and is not begun."""
    return waiting_again(work) if work.gate.stage is ProposalStage.APPROVED else work
