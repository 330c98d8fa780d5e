"""Fold of an offer of notes: the offer itself, and the decision about its proposal."""

from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    ActionStarted,
    GateEvent,
    NotesOffered,
    ProposalReplaced,
    WorkEvent,
)
from agent_workbench.core.fold.proposal import fold_proposal
from agent_workbench.core.proposals import OFFER_NOTES, ProposalStage, Verdict
from agent_workbench.core.state.planning import NoteOffer
from agent_workbench.core.state.session_state import SessionState


def fold_offered(state: SessionState, event: NotesOffered) -> SessionState:
    """Return the state with one more offer; while another one is open it waits for that."""
    open_one = state.open_note_offer
    if open_one is not None:
        return replace(state, note_offer=replace(open_one, later=(*open_one.later, event)))
    return replace(state, note_offer=NoteOffer(event))


def is_about_notes(state: SessionState, event: GateEvent | WorkEvent) -> bool:
    """Return True if an event at the gate, or of an action, is about the open offer and not about a run."""
    offer = state.open_note_offer
    if offer is None:
        return False
    if isinstance(event, ActionProposed):
        return event.proposal.tool == OFFER_NOTES
    if isinstance(event, ProposalReplaced):
        return offer.proposal is not None and event.proposal.id == offer.proposal.id
    if isinstance(event, ActionDecided | ActionStarted | ActionFinished):
        return offer.proposal is not None and event.proposal_id == offer.proposal.id
    return False


def fold_note_gate(state: SessionState, event: GateEvent | WorkEvent) -> SessionState:
    """Return the state after an event about the open offer."""
    offer = state.open_note_offer
    if offer is None:
        return state
    return replace(state, note_offer=_at_gate(offer, event), trouble=None)


def _at_gate(offer: NoteOffer, event: GateEvent | WorkEvent) -> NoteOffer:
    after = fold_proposal(offer, event)
    match event:
        case ActionDecided(verdict=Verdict.APPROVE):
            return after
        case ActionDecided() | ActionFinished(result=ActionResult.OK | ActionResult.UNKNOWN):
            return _closed(after)
        case ActionFinished():
            return replace(after, stage=ProposalStage.WAITING, decision=None)
        case _:
            return after


def _closed(offer: NoteOffer) -> NoteOffer:
    """Return the next offer that waits, or this one closed."""
    return NoteOffer(offer.later[0], later=offer.later[1:]) if offer.later else replace(offer, open=False)
