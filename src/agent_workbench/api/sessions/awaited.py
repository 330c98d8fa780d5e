"""Waits of an attended session: for words, a decision, a retry, or for nothing while it works."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.session_state import SessionState


class Awaited(StrEnum):
    """Input of a person without which the session does not continue."""

    NOTHING = "nothing"
    """The session works."""
    WORDS = "words"
    """Nothing is at work: a task, or a message of a chat."""
    DECISION = "decision"
    RETRY = "retry"
    """Something outside failed."""
    RESUMPTION = "resumption"
    """The task is paused."""


class Wait(Struct, frozen=True):
    """Awaited input; for a decision also the `proposal` that no rule and no hook decides."""

    awaited: Awaited
    proposal: Proposal | None = None


def wait_of(state: SessionState) -> Wait:
    """Return what a session in this state waits for."""
    from agent_workbench.engine.approval.policy import ruling  # engine and adapters are loaded by the calls
    from agent_workbench.engine.flow import AwaitGo, AwaitRetry, Decide, Idle, next_move

    match next_move(state):
        case Idle():
            return Wait(Awaited.WORDS)
        case AwaitRetry():
            return Wait(Awaited.RETRY)
        case AwaitGo():
            return Wait(Awaited.RESUMPTION)
        case Decide(proposal=proposal) if ruling(state, proposal) is None:
            return Wait(Awaited.DECISION, proposal)
        case _:
            return Wait(Awaited.NOTHING)
