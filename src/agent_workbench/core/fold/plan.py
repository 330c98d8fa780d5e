"""Fold of the plan's events: its content, the status of tasks, scratchpads, and a plan asked of the model."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.events import (
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
)
from agent_workbench.core.fold.planning import fold_planning
from agent_workbench.core.state.session_state import SessionState


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
