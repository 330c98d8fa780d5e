"""Fold of the events of hooks: the runs for proposals that wait. Other runs change no state."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    GateEvent,
    HookAnswered,
    HookEvent,
    HookStarted,
    ProposalReplaced,
    WorkEvent,
)
from agent_workbench.core.hook_answers import HookAnswer, HookRun
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.state.session_state import SessionState


def fold_hooks(state: SessionState, event: HookEvent) -> SessionState:
    """Return the state after an event of a hook."""
    if not event.proposal_id:
        return state
    match event:
        case HookStarted() if state.waiting is None or state.waiting.id != event.proposal_id:
            return state  # it was decided meanwhile
        case HookStarted():
            begun = HookRun(event.proposal_id, event.hook, event.point)
            return replace(state, hook_runs=(*state.hook_runs, begun))
        case HookAnswered():
            answer = HookAnswer(event.verdict, event.reason, event.failed)
            ended = HookRun(event.proposal_id, event.hook, event.point)
            runs = tuple(replace(run, answer=answer) if run == ended else run for run in state.hook_runs)
            return replace(state, hook_runs=runs)
    assert_never(event)


def fold_hook_gate(state: SessionState, event: GateEvent | WorkEvent) -> SessionState:
    """Return the state without the runs for a content that was decided, or no longer waits."""
    match event:
        case ActionProposed() | ProposalReplaced():
            return _without_runs(state, event.proposal.id)
        case ActionDecided():
            return _without_runs(state, event.proposal_id)
        case _:
            return state


def _without_runs(state: SessionState, proposal: ProposalId) -> SessionState:
    if not state.hook_runs:
        return state
    return replace(state, hook_runs=tuple(run for run in state.hook_runs if run.proposal != proposal))
