"""Hooks before a decision: a proposal waits for their answers, which can refuse it or ask for a person."""

from agent_workbench.core.events import HookAnswered, HookStarted
from agent_workbench.core.hook_answers import (
    INTERRUPTED,
    NOT_ALL_SEEN,
    HookAnswer,
    HookOutcome,
    HookVerdict,
    read_answer,
)
from agent_workbench.core.hook_document import HookDocument, proposal_document
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.proposal_hooks import began, point_of
from agent_workbench.engine.runtime.session_context import SessionContext


async def run_hook(session: SessionContext, proposal: Proposal, name: str) -> None:
    """Run a hook about a proposal and record its answer. One that was started before is not run again: it asks."""
    point = point_of(proposal)
    if point is None:
        return
    if began(session.state, proposal, name, point):
        answer, seconds = HookAnswer(HookVerdict.ASK, INTERRUPTED, failed=True), 0.0
    else:
        document = proposal_document(session.state, point, name, proposal)
        session.publisher.show_activity(f"hook {name} looks at {proposal.id}")
        await session.record(HookStarted(name, point, proposal.id))
        outcome = await session.ports.hooks.run(name, point, document.text, document.workspace)
        answer, seconds = _answer(document, outcome), outcome.seconds
    await session.record(
        HookAnswered(name, point, answer.verdict, proposal.id, answer.reason, round(seconds, 3), answer.failed)
    )


def _answer(document: HookDocument, outcome: HookOutcome) -> HookAnswer:
    answer = read_answer(outcome)
    if document.cut and answer.verdict is HookVerdict.NONE:
        return HookAnswer(HookVerdict.ASK, NOT_ALL_SEEN, failed=True)
    return answer
