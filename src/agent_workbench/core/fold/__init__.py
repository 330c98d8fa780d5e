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
from agent_workbench.core.fold.chat import fold_chat, fold_chat_gate, fold_chat_step
from agent_workbench.core.fold.consult import fold_consult
from agent_workbench.core.fold.gate import fold_gate
from agent_workbench.core.fold.hooks import fold_hook_gate, fold_hooks
from agent_workbench.core.fold.note_offer import fold_note_gate, fold_offered, is_about_notes
from agent_workbench.core.fold.planning import fold_plan, fold_plan_gate
from agent_workbench.core.fold.session import fold_session
from agent_workbench.core.fold.step import fold_step
from agent_workbench.core.fold.work import fold_work
from agent_workbench.core.state.session_state import SessionState


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
        after = fold_step(before, event) if before.chat is None else fold_chat_step(before, event)
    elif isinstance(event, ConsultEvent):
        after = fold_consult(before, event, recorded.seq)
    elif isinstance(event, HookEvent):
        after = fold_hooks(before, event)
    elif isinstance(event, NotesOffered):
        after = fold_offered(before, event)
    else:
        after = fold_hook_gate(_fold_proposal(before, event), event)
    run = after.run
    if after.chat is not None:
        return replace(after, chat=replace(after.chat, history=after.chat.history.plus(recorded)))
    if run is None:
        return replace(after, opening=(*after.opening, recorded))
    return replace(after, run=replace(run, history=run.history.plus(recorded)))


def _fold_proposal(state: SessionState, event: GateEvent | WorkEvent) -> SessionState:
    """Return the state after an event about a proposal: of the planning, an offer of notes, the chat, or the run."""
    if state.open_planning is not None:
        return fold_plan_gate(state, event)
    if is_about_notes(state, event):
        return fold_note_gate(state, event)
    if state.chat is not None:
        return fold_chat_gate(state, event)
    return fold_gate(state, event) if isinstance(event, GateEvent) else fold_work(state, event)


def fold_all(events: Iterable[Recorded], state: SessionState | None = None) -> SessionState:
    """Return the state after all these events, starting from `state` (None: empty)."""
    return reduce(fold, events, state or SessionState())
