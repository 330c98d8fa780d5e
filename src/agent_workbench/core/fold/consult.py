"""Fold of the consultations: what was asked and answered; their cost counts into the budget of the open task."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.events import ConsultantAnswered, ConsultantAsked, ConsultEvent
from agent_workbench.core.state.consultation import Consultation
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from agent_workbench.core.state.work import Chat


def fold_consult(state: SessionState, event: ConsultEvent, seq: int) -> SessionState:
    """Return the state after an event of a consultation."""
    match event:
        case ConsultantAsked():
            begun = Consultation(event, seq=seq, time=state.time, root=state.repo)
            return replace(state, consultations=(*state.consultations, begun), main=_reviewed(state.main, event))
        case ConsultantAnswered():
            ended = tuple(
                replace(each, answered=event, time=state.time) if each.asked.number == event.number else each
                for each in state.consultations
            )
            return replace(state, consultations=ended, main=_charged(state.main, event))
    assert_never(event)


def _reviewed(main: TaskRun | Chat | None, event: ConsultantAsked) -> TaskRun | Chat | None:
    """Return the work with the tree that is reviewed, if it is the one that would be committed."""
    if isinstance(main, TaskRun) and event.about and event.about == main.tree:
        return replace(main, reviewed=main.tree)
    return main


def _charged(main: TaskRun | Chat | None, event: ConsultantAnswered) -> TaskRun | Chat | None:
    """Return the work with the consultation's cost. Its seconds are those of the action if the model asked."""
    if main is None or (isinstance(main, TaskRun) and main.phase is Phase.OVER):
        return main
    charged = replace(main, tokens=main.tokens + event.tokens, dollars=main.dollars + event.dollars)
    if not isinstance(charged, TaskRun) or charged.gate.running:
        return charged
    return replace(charged, working_seconds=charged.working_seconds + event.duration_ms / 1000)
