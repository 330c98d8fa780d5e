"""Fold of events to the state of a session; each group of events has a fold of its own."""

from collections.abc import Iterable
from functools import reduce

from msgspec.structs import replace

from agent_workbench.core.events import (
    ChatEvent,
    ConsultEvent,
    GateEvent,
    HookEvent,
    NotesOffered,
    PlanEvent,
    Recorded,
    SessionEvent,
    StepEvent,
    WorkEvent,
)
from agent_workbench.core.fold.chat import fold_chat, fold_chat_gate, fold_chat_step, fold_consult
from agent_workbench.core.fold.gate import fold_gate, fold_hook_gate, fold_hooks, fold_run_gate
from agent_workbench.core.fold.planning import fold_note_gate, fold_offered, fold_plan, fold_plan_gate, is_about_notes
from agent_workbench.core.fold.session import fold_session
from agent_workbench.core.fold.step import fold_step
from agent_workbench.core.fold.work import fold_work
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.work import Chat


def fold(state: SessionState, recorded: Recorded) -> SessionState:
    """Return the state after one more event. Pure: the same events give the same state, live or read back."""
    before = replace(state, seq=recorded.seq, time=recorded.time, hash=recorded.hash)
    event = recorded.event
    if isinstance(event, SessionEvent):
        after = fold_session(before, event)
    elif isinstance(event, PlanEvent):
        after = fold_plan(before, event)
    elif isinstance(event, ChatEvent):
        after = fold_chat(before, event)
    elif isinstance(event, StepEvent):
        chat = before.main if isinstance(before.main, Chat) else None
        after = fold_step(before, event) if chat is None else fold_chat_step(before, chat, event)
    elif isinstance(event, ConsultEvent):
        after = fold_consult(before, event, recorded.seq)
    elif isinstance(event, HookEvent):
        after = fold_hooks(before, event)
    elif isinstance(event, NotesOffered):
        after = fold_offered(before, event)
    else:
        after = fold_hook_gate(_fold_proposal(before, event), event)
    if after.main is None:
        return replace(after, opening=(*after.opening, recorded))
    return replace(after, main=replace(after.main, history=after.main.history.plus(recorded)))


def _fold_proposal(state: SessionState, event: GateEvent | WorkEvent) -> SessionState:
    """Return the state after an event about a proposal: first the gate of the work, then what the work makes of it."""
    planning, offer, main = state.open_planning, state.open_note_offer, state.main
    if planning is not None:
        planned = fold_plan_gate(fold_gate(planning, event), event)
        return state if planned is planning else replace(state, planning=planned, trouble=None)
    if offer is not None and is_about_notes(offer, event):
        return replace(state, note_offer=fold_note_gate(fold_gate(offer, event), event), trouble=None)
    if isinstance(main, Chat):
        said = fold_chat_gate(fold_gate(main, event), event)
        return state if said is main else replace(state, main=said, trouble=None)
    if main is None:
        return state
    run = fold_gate(main, event)
    return fold_run_gate(state, run, event) if isinstance(event, GateEvent) else fold_work(state, run, event)


def fold_all(events: Iterable[Recorded], state: SessionState | None = None) -> SessionState:
    """Return the state after all these events, starting from `state` (None: empty)."""
    return reduce(fold, events, state or SessionState())
