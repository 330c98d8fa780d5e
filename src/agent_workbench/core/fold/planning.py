"""Folds of the plan, of a planning and of an offer of notes: what was asked, and the decision about it."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    GateEvent,
    NotesOffered,
    PlanAnswered,
    PlanAsked,
    PlanDispatched,
    PlanEvent,
    PlanPrompted,
    PlanRead,
    PlanRejected,
    PlanSurveyed,
    ScratchpadChanged,
    TaskStatusChanged,
    TasksWithdrawn,
    WorkEvent,
)
from agent_workbench.core.fold.gate import at_stage, waiting_again
from agent_workbench.core.proposals import OFFER_NOTES, POLICY, ProposalStage, Verdict
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import proposal_of
from agent_workbench.core.state.work import Gate, NoteOffer, PlanAttempt, Planning

PlanningEvent = PlanAsked | PlanSurveyed | PlanPrompted | PlanAnswered | PlanRejected


def fold_planning(planning: Planning | None, event: PlanningEvent) -> Planning | None:
    """Return the planning after one of its own events."""
    if isinstance(event, PlanAsked):
        return _asked(planning, event)
    if planning is None:
        return None
    match event:
        case PlanSurveyed():
            return replace(planning, survey=event)
        case PlanPrompted():
            return replace(planning, step=event.step)
        case PlanAnswered():
            return planning if event.stopped else replace(planning, answer=event)
        case PlanRejected():
            answer = planning.answer.text if planning.answer is not None else ""
            attempts = (*planning.attempts, PlanAttempt(answer, event.reason, by_user=False))
            return replace(planning, answer=None, attempts=attempts, misses=planning.misses + 1)
    assert_never(event)


def _asked(before: Planning | None, event: PlanAsked) -> Planning:
    """Return a new planning; for the goal of the last one it goes on from there, with the plan that was put aside."""
    if before is not None and _is_same(before, event):
        return replace(
            before,
            replaces=event.replaces,
            rest=event.rest,
            misses=0,
            answer=None,
            gate=Gate(),
            open=True,
        )
    return Planning(event.goal, event.wording, event.replaces, check_for=event.check_for, rest=event.rest)


def _is_same(before: Planning, event: PlanAsked) -> bool:
    asked = (event.goal, event.wording, event.check_for, event.rest)
    return (before.goal, before.wording, before.check_for, before.rest) == asked


def fold_plan_gate(planning: Planning, event: GateEvent | WorkEvent) -> Planning:
    """Return the open planning after an event that its gate met."""
    match event:
        case ActionProposed():
            return replace(planning, aside=None, misses=0)
        case ActionDecided():
            return _decided(planning, event)
        case AbortAsked():
            return _put_aside(planning)
        case ActionFinished(result=ActionResult.OK):
            return replace(planning, answer=None, open=False)
        case ActionFinished(result=ActionResult.UNKNOWN):
            return at_stage(_put_aside(planning), ProposalStage.UNKNOWN)
        case ActionFinished():
            return waiting_again(planning)
        case _:
            return planning


def _decided(planning: Planning, event: ActionDecided) -> Planning:
    match event.verdict:
        case Verdict.APPROVE:
            return planning
        case Verdict.REJECT if not event.by.startswith(POLICY):
            return _refused(planning, event.reason)
        case Verdict.REJECT | Verdict.SKIP | Verdict.ABORT:
            return _put_aside(planning)
    assert_never(event.verdict)


def _refused(planning: Planning, reason: str) -> Planning:
    """Return the planning without the plan that waited; the next one replaces the plan if that one would have."""
    proposal = planning.gate.proposal
    answer = planning.answer.text if planning.answer is not None else proposal.text if proposal is not None else ""
    replaces = proposal.plan.replaces if proposal is not None and proposal.plan is not None else planning.replaces
    return replace(
        planning,
        attempts=(*planning.attempts, PlanAttempt(answer, reason, by_user=True)),
        replaces=replaces,
        answer=None,
        gate=Gate(decision=planning.gate.decision),
    )


def _put_aside(planning: Planning) -> Planning:
    """Return the planning closed, with the plan that waited."""
    waited = planning.gate.proposal.plan if planning.gate.proposal is not None else None
    gate = Gate(None, ProposalStage.REFUSED, planning.gate.decision)
    return replace(planning, open=False, aside=waited or planning.aside, answer=None, gate=gate)


def fold_plan(state: SessionState, event: PlanEvent) -> SessionState:
    """Return the state after an event of the plan group."""
    match event:
        case PlanRead():
            return replace(state, plan=event.plan, plan_path=event.path)
        case TaskStatusChanged():
            return replace(state, plan=state.plan.with_status(event.task, event.status, event.reason))
        case ScratchpadChanged():
            others = tuple(pair for pair in state.scratchpads if pair[0] != event.task)
            return replace(state, scratchpads=(*others, (event.task, event.text)))
        case PlanDispatched() | TasksWithdrawn():
            return state
        case PlanAsked() | PlanSurveyed() | PlanPrompted() | PlanAnswered() | PlanRejected():
            return replace(state, trouble=None, planning=fold_planning(state.planning, event))
    assert_never(event)


def fold_offered(state: SessionState, event: NotesOffered) -> SessionState:
    """Return the state with one more offer; while another one is open it waits for that."""
    open_one = state.open_note_offer
    if open_one is not None:
        return replace(state, note_offer=replace(open_one, later=(*open_one.later, event)))
    return replace(state, note_offer=NoteOffer(event))


def is_about_notes(offer: NoteOffer, event: GateEvent | WorkEvent) -> bool:
    """Return True if an event at the gate, or of an action, is about the open offer and not about a run."""
    if isinstance(event, ActionProposed):
        return event.proposal.tool == OFFER_NOTES
    own = offer.gate.proposal.id if offer.gate.proposal is not None else ""
    return bool(own) and own == proposal_of(event)


def fold_note_gate(offer: NoteOffer, event: GateEvent | WorkEvent) -> NoteOffer:
    """Return the open offer after an event about it."""
    match event:
        case ActionDecided(verdict=Verdict.APPROVE):
            return offer
        case ActionDecided() | ActionFinished(result=ActionResult.OK | ActionResult.UNKNOWN):
            return _closed(offer)
        case ActionFinished():
            return waiting_again(offer)
        case _:
            return offer


def _closed(offer: NoteOffer) -> NoteOffer:
    """Return the next offer that waits, or this one closed."""
    return NoteOffer(offer.later[0], later=offer.later[1:]) if offer.later else replace(offer, open=False)
