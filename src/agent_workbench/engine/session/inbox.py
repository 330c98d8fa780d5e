"""Decisions of the inbox, made in other processes: each is recorded if it is about exactly what waits."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.inbox import EXPIRED, InboxDecision, Reference, reference_to, refusal
from agent_workbench.core.intents import (
    ApproveProposal,
    RecordDecision,
    RejectProposal,
    SkipProposal,
)
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.proposals import USER, Proposal, Verdict, shown_sha
from agent_workbench.core.text.amounts import quoted
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.session.intents import GateIntent, answer_proposal, answerable

VERDICTS = frozenset({Verdict.APPROVE, Verdict.REJECT, Verdict.SKIP})
"""Verdicts that the inbox accepts; a task is aborted on its own screen only."""

_TELL_SECONDS = 1.0


async def record_decision(session: SessionContext, decision: InboxDecision) -> Outcome:
    """Record a decision of the inbox if it is about exactly what waits, and remove it from the inbox either way.

    One that cannot be recorded because the disk refuses stays in the inbox; `StorageError` is raised then.
    """
    outcome = await _record(session, decision)
    await session.ports.inbox.remove(decision)
    return outcome


async def record_pending(session: SessionContext) -> None:
    """Record what the inbox holds for this session; tell the user what does not count, or cannot be read."""
    try:
        for decision in await session.ports.inbox.pending(session.state.session):
            outcome = await record_decision(session, decision)
            if isinstance(outcome, Refused):
                session.publisher.notify(outcome.reason)
    except WorkbenchError as error:
        session.publisher.notify(error_text(error))
    tell_refused(session)


def tell_refused(session: SessionContext) -> None:
    """Tell the user once of everything in the inbox that does not count."""
    for why in session.ports.inbox.refused(session.state.session):
        session.publisher.notify_once(why)


async def watch_inbox(session: SessionContext, submit: Callable[[RecordDecision], Awaitable[Outcome]]) -> None:
    """Submit each decision that other processes make while the session is open; ends when it is cancelled."""
    inbox, name = session.ports.inbox, session.state.session
    stuck: set[Reference] = set()  # tried, and kept as the disk refused
    telling = asyncio.create_task(_tell_often(session))
    try:
        while True:
            found = await inbox.wait(name, stuck)
            for decision in found:
                outcome = await submit(RecordDecision(decision))
                if isinstance(outcome, Refused):
                    session.publisher.notify(outcome.reason)
            stuck.update(each.reference for each in await inbox.pending(name) if each in found)
    except WorkbenchError as error:
        session.publisher.notify(f"decisions from other processes are not seen: {error_text(error)}")
    finally:
        telling.cancel()


async def _tell_often(session: SessionContext) -> None:
    while True:
        tell_refused(session)
        await asyncio.sleep(_TELL_SECONDS)


async def _record(session: SessionContext, decision: InboxDecision) -> Outcome:
    state = session.state
    history = state.latest_events
    if decision.is_recorded_in(history):
        return Accepted()  # the process that recorded it died before it removed it
    waiting = answerable(state)
    if waiting is None or reference_to(state.session, waiting) != decision.reference:
        return _refused(decision, refusal(history, decision.reference))
    if decision.verdict not in VERDICTS:
        return _refused(decision, f"the inbox cannot {decision.verdict}")
    if decision.by not in {USER, EXPIRED}:
        return _refused(decision, f"{quoted(decision.by)} cannot decide")
    if decision.by != USER and decision.verdict is not Verdict.REJECT:
        return _refused(decision, "only a person approves")
    outcome = await answer_proposal(session, _intent(decision, waiting), decision)
    return _refused(decision, outcome.reason) if isinstance(outcome, Refused) else outcome


def _intent(decision: InboxDecision, waiting: Proposal) -> GateIntent:
    match decision.verdict:
        case Verdict.APPROVE:
            left = tuple(
                LeftOut(each, reason=decision.reason) if isinstance(each, str) else each for each in decision.left
            )
            return ApproveProposal(waiting.id, shown_sha(waiting), left, decision.result_sha)
        case Verdict.REJECT:
            return RejectProposal(waiting.id, decision.reason)
        case _:
            return SkipProposal(waiting.id)


def _refused(decision: InboxDecision, why: str) -> Refused:
    return Refused(f"the decision by {decision.made_by} at {decision.made_at} does not count: {why}")
