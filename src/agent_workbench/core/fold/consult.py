"""Fold of the consultations: what was asked and answered; their cost counts into the budget of the open task."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.events import ConsultantAnswered, ConsultantAsked, ConsultEvent
from agent_workbench.core.proposals import ProposalStage
from agent_workbench.core.state.consultation import Consultation
from agent_workbench.core.state.session_state import SessionState, TaskRun


def fold_consult(state: SessionState, event: ConsultEvent, seq: int) -> SessionState:
    """Return the state after an event of a consultation."""
    match event:
        case ConsultantAsked():
            begun = Consultation(event, seq=seq, time=state.time, root=state.repo)
            return replace(state, consultations=(*state.consultations, begun), run=_reviewed(state, event))
        case ConsultantAnswered():
            ended = tuple(
                replace(each, answered=event, time=state.time) if each.asked.number == event.number else each
                for each in state.consultations
            )
            run, chat = state.run if state.unfinished else None, state.chat
            if chat is not None:
                spent = (chat.tokens + event.tokens, chat.dollars + event.dollars)
                return replace(state, consultations=ended, chat=replace(chat, tokens=spent[0], dollars=spent[1]))
            return replace(state, consultations=ended, run=_charged(run, event) if run is not None else state.run)
    assert_never(event)


def _reviewed(state: SessionState, event: ConsultantAsked) -> TaskRun | None:
    """Return the run with the tree that is reviewed, if it is the one that would be committed."""
    run = state.run
    return run if run is None or not event.about or event.about != run.tree else replace(run, reviewed=run.tree)


def _charged(run: TaskRun, event: ConsultantAnswered) -> TaskRun:
    """Return the run with the consultation's cost. Its seconds are those of the action if the model asked."""
    within = run.stage is ProposalStage.RUNNING
    return replace(
        run,
        tokens=run.tokens + event.tokens,
        dollars=run.dollars + event.dollars,
        working_seconds=run.working_seconds + (0.0 if within else event.duration_ms / 1000),
    )
