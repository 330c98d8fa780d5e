"""Answers to the waiting proposal: from the session's own screen, and from the inbox."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.events import Author
from agent_workbench.core.inbox import EXPIRED, InboxDecision, Reference, reference_to, refusal
from agent_workbench.core.intents import (
    ApproveProposal,
    ChooseMergeMethod,
    EditProposal,
    RecordDecision,
    RejectProposal,
    SkipProposal,
)
from agent_workbench.core.intents.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.patch.values import LeftOut
from agent_workbench.core.proposals import OFFER_NOTES, USER, Proposal, Verdict, shown_sha
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.amounts import quoted
from agent_workbench.engine.approval.partial_approval import take_part
from agent_workbench.engine.approval.proposals import choose_method, decide, replace_proposal
from agent_workbench.engine.knowledge.offers import edit_notes
from agent_workbench.engine.planning.plan_proposal import edit_plan
from agent_workbench.engine.runtime.session_context import SessionContext

GateIntent = ApproveProposal | RejectProposal | SkipProposal | EditProposal | ChooseMergeMethod
VERDICTS = frozenset({Verdict.APPROVE, Verdict.REJECT, Verdict.SKIP})
"""Verdicts that the inbox accepts; a task is aborted on its own screen only."""

_TELL_SECONDS = 1.0


def answerable(state: SessionState) -> Proposal | None:
    """Return the proposal that can be answered now; none can while a diff is taken back."""
    run = state.run
    return None if run is not None and run.undoing is not None else state.waiting


async def answer_proposal(
    session: SessionContext, intent: GateIntent, decision: InboxDecision | None = None
) -> Outcome:
    """Decide or replace the waiting proposal; `decision` is the one of the inbox that the answer came with, if any.

    It says who decides; else that is the person of the session.
    """
    waiting = answerable(session.state)
    by = session.person if decision is None else decision.by
    if waiting is None or waiting.id != intent.proposal:
        return Refused("that proposal no longer waits, so your answer was not recorded; look at what waits now")
    match intent:
        case ApproveProposal() if intent.shown_sha != shown_sha(waiting):
            return Refused("the proposal changed after it was shown; look again")
        case ApproveProposal() if waiting.plan is not None and not waiting.plan.taken:
            return Refused("no task of the plan is taken: take one, or skip the plan")
        case ApproveProposal() if intent.left:
            return await take_part(session, waiting, intent, decision)
        case ApproveProposal():
            await decide(session, waiting, Verdict.APPROVE, by, decision=decision)
        case RejectProposal() | SkipProposal() if _is_needed(session, waiting, intent):
            return Refused("there is no room without a summary: approve this one, edit it, or abort the task")
        case RejectProposal():
            await decide(session, waiting, Verdict.REJECT, by, intent.reason, decision=decision)
        case SkipProposal():
            await decide(session, waiting, Verdict.SKIP, by, decision=decision)
        case EditProposal() if waiting.plan is not None:
            await edit_plan(session, waiting, intent.text)
        case EditProposal() if waiting.tool == OFFER_NOTES:
            await edit_notes(session, waiting, intent.text)
        case EditProposal():
            await replace_proposal(session, waiting, intent.text, "edited", Author.USER)
        case ChooseMergeMethod() if intent.method not in waiting.methods:
            return Refused(f"this cannot be merged by {intent.method}")
        case ChooseMergeMethod():
            await choose_method(session, waiting, intent.method)
    return Accepted()


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


def _is_needed(session: SessionContext, waiting: Proposal, intent: RejectProposal | SkipProposal) -> bool:
    """Return True if the task cannot continue without the pending summary, which the workbench wrote itself."""
    if waiting.kind is not Permission.SUMMARY or not waiting.fallback:
        return False
    return not (session.run.compaction_asked and isinstance(intent, SkipProposal))
