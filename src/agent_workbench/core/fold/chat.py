"""Fold of a chat: messages, prompts, answers and calls of a session without a task."""

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
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.work import Chat


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
