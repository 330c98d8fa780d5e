"""Fold of events to the state of a session; each group of events has a fold of its own."""

from collections.abc import Iterable
from functools import reduce

from msgspec.structs import replace

from agent_workbench.core.events import ConsultEvent, GateEvent, PlanEvent, Recorded, SessionEvent, StepEvent, WorkEvent
from agent_workbench.core.fold.consult import fold_consult
from agent_workbench.core.fold.gate import fold_gate
from agent_workbench.core.fold.plan import fold_plan
from agent_workbench.core.fold.planning import fold_plan_gate
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
    elif isinstance(event, StepEvent):
        after = fold_step(before, event)
    elif isinstance(event, ConsultEvent):
        after = fold_consult(before, event, recorded.seq)
    elif isinstance(event, GateEvent):
        after = fold_gate(before, event) if before.open_planning is None else fold_plan_gate(before, event)
    else:
        work: WorkEvent = event
        after = fold_work(before, work) if before.open_planning is None else fold_plan_gate(before, work)
    run = after.run
    if run is None:
        return replace(after, opening=(*after.opening, recorded))
    return replace(after, run=replace(run, history=run.history.plus(recorded)))


def fold_all(events: Iterable[Recorded], state: SessionState | None = None) -> SessionState:
    """Return the state after all these events, starting from `state` (None: empty)."""
    return reduce(fold, events, state or SessionState())
