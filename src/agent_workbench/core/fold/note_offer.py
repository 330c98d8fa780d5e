"""Fold of an offer of notes: the offer itself, and the decision about its proposal."""

from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    GateEvent,
    NotesOffered,
    WorkEvent,
)
from agent_workbench.core.fold.gate import waiting_again
from agent_workbench.core.proposals import OFFER_NOTES, Verdict
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import proposal_of
from agent_workbench.core.state.work import NoteOffer


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
