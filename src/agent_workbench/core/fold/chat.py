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
from agent_workbench.core.fold.proposal import fold_proposal
from agent_workbench.core.proposals import ProposalStage, Verdict
from agent_workbench.core.state.chat import Chat
from agent_workbench.core.state.session_state import SessionState


def fold_chat(state: SessionState, event: ChatEvent) -> SessionState:
    """Return the state after an event of the chat's own group."""
    match event:
        case ChatStarted():
            return replace(state, chat=Chat(event.specs, event.wording), trouble=None)
        case ChatReplied() if state.chat is not None:
            return replace(state, chat=replace(state.chat, answer=None, due=False, misses=0, reply=event))
        case ChatShortened() if state.chat is not None:
            return replace(state, chat=replace(state.chat, shortened_seq=event.through_seq, prompt_parts=0))
        case ChatReplied() | ChatShortened():
            return state
    assert_never(event)


def fold_chat_step(state: SessionState, event: StepEvent) -> SessionState:
    """Return the state after a message, a prompt or an answer while a chat is open."""
    chat = state.chat
    if chat is None:
        return state
    match event:
        case UserSaid():
            return replace(state, trouble=None, chat=replace(chat, due=True, calls=0, misses=0, reply=None))
        case PromptBuilt():
            parts = chat.prompt_parts + len(event.parts)
            return replace(state, prompt=event, chat=replace(chat, step=event.step, prompt_parts=parts))
        case ModelAnswered():
            answered = replace(_costed(chat, event), answer=event, answered_step=event.step)
            return replace(state, figures=event.figures, chat=answered)
        case ModelInterrupted():
            return replace(state, figures=event.figures, chat=_interrupted(chat, event))
        case ActionRejected():
            return replace(state, chat=replace(chat, answer=None, calls=chat.calls + 1, misses=chat.misses + 1))
        case _:
            return state


def fold_chat_gate(state: SessionState, event: GateEvent | WorkEvent) -> SessionState:
    """Return the state after an event at the gate, or of a call, while a chat is open."""
    chat = state.chat
    if chat is None:
        return state
    after = _at_gate(chat, event)
    return state if after is chat else replace(state, chat=after, trouble=None)


def _at_gate(chat: Chat, event: GateEvent | WorkEvent) -> Chat:
    after = fold_proposal(chat, event)
    match event:
        case ActionProposed():
            return replace(after, answer=None, calls=chat.calls + 1, misses=0)
        case ActionDecided(verdict=Verdict.ABORT):
            return replace(after, due=False)
        case AbortAsked():
            # A call that runs is stopped, and its outcome recorded; one that was not started is dropped.
            stage = chat.stage if chat.stage is ProposalStage.RUNNING else ProposalStage.REFUSED
            return replace(chat, due=False, answer=None, stage=stage)
        case _:
            return after


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


def retried_chat(chat: Chat | None) -> Chat | None:
    """Return the chat after the user asked to try again: the answers so far no longer count as misses."""
    return chat if chat is None else replace(chat, misses=0)
