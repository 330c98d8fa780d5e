"""Fold of what is asked beside the tasks: a chat, and consultations, whose cost the open task's budget bears."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionProposed,
    ActionRejected,
    ChatEvent,
    ChatReplied,
    ChatShortened,
    ChatStarted,
    ConsultantAnswered,
    ConsultantAsked,
    ConsultEvent,
    GateEvent,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    StepEvent,
    UserSaid,
    WorkEvent,
)
from agent_workbench.core.fold.gate import dropped
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from agent_workbench.core.state.work import Chat, Consultation


def fold_chat(state: SessionState, event: ChatEvent) -> SessionState:
    """Return the state after an event of the chat's own group."""
    chat = state.main
    match event:
        case ChatStarted():
            return replace(state, main=Chat(specs=event.specs, wording=event.wording), trouble=None)
        case ChatReplied() if isinstance(chat, Chat):
            return replace(state, main=replace(chat, answer=None, due=False, misses=0, reply=event))
        case ChatShortened() if isinstance(chat, Chat):
            return replace(state, main=replace(chat, shortened_seq=event.through_seq, prompt_parts=0))
        case ChatReplied() | ChatShortened():
            return state
    assert_never(event)


def fold_chat_step(state: SessionState, chat: Chat, event: StepEvent) -> SessionState:
    """Return the state after a message, a prompt or an answer in the chat."""
    match event:
        case UserSaid():
            return replace(state, trouble=None, main=replace(chat, due=True, calls=0, misses=0, reply=None))
        case PromptBuilt():
            parts = chat.prompt_parts + len(event.parts)
            return replace(state, prompt=event, main=replace(chat, step=event.step, prompt_parts=parts))
        case ModelAnswered():
            answered = replace(_costed(chat, event), answer=event, answered_step=event.step)
            return replace(state, figures=event.figures, main=answered)
        case ModelInterrupted():
            return replace(state, figures=event.figures, main=_interrupted(chat, event))
        case ActionRejected():
            return replace(state, main=replace(chat, answer=None, calls=chat.calls + 1, misses=chat.misses + 1))
        case _:
            return state


def fold_chat_gate(chat: Chat, event: GateEvent | WorkEvent) -> Chat:
    """Return the chat after an event that its gate, or a call, met."""
    match event:
        case ActionProposed():
            return replace(chat, answer=None, calls=chat.calls + 1, misses=0)
        case ActionDecided(verdict=Verdict.ABORT):
            return replace(chat, due=False)
        case AbortAsked():
            # A call that runs is stopped, and its outcome recorded; one that was not started is dropped.
            ended = replace(chat, due=False, answer=None)
            return ended if chat.gate.running else dropped(ended)
        case _:
            return chat


def _interrupted(chat: Chat, event: ModelInterrupted) -> Chat:
    """Return the chat after an unfinished answer: one that the user stopped ends the turn, a cut one is a miss."""
    after = _costed(chat, event)
    match event.cause:
        case InterruptCause.STOPPED:
            return replace(after, due=False, answered_step=event.step)
        case InterruptCause.LENGTH | InterruptCause.REPETITION:
            return replace(after, misses=chat.misses + 1, answered_step=event.step)
        case InterruptCause.DIED:
            return after
    assert_never(event.cause)


def _costed(chat: Chat, answer: ModelAnswered | ModelInterrupted) -> Chat:
    figures = answer.figures
    return replace(
        chat,
        tokens=chat.tokens + figures.prompt_tokens + figures.answer_tokens,
        dollars=chat.dollars + figures.dollars,
    )


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
