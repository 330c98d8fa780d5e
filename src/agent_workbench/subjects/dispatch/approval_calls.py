"""Approvals of planned tasks: the proposals that a person approved, found in the journals of the sessions."""

from collections.abc import Collection, Iterator, Sequence

from agent_workbench.core.errors import JournalError, UsageError
from agent_workbench.core.events import ActionDecided, ActionResult, Recorded, SessionResumed, SessionStarted
from agent_workbench.core.history.signed_approvals import contradictions, decision_message
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.shared_state import Signatures
from agent_workbench.core.ports.stores import SessionStore
from agent_workbench.core.proposals import POLICY, PROPOSE_PLAN, Proposal, Verdict
from agent_workbench.core.signed import SignedPurpose
from agent_workbench.core.state.steps import decisions_of, newest_steps
from agent_workbench.core.task_estimates import Estimate
from agent_workbench.subjects.dispatch.preparation import PlanApproval

MOST_SESSIONS = 200


class PlanApprovals:
    """Approved plans in the newest sessions of a store. A journal is read once as long as it does not grow.

    `store.read` proves each journal. What another machine wrote proves what it did and no decision of a person: there
    an approval counts only with the signature of a person, which `signatures` judges (None: none counts).
    """

    def __init__(self, store: SessionStore, signatures: Signatures | None = None) -> None:
        self._store = store
        self._signatures = signatures
        self._read: dict[SessionId, tuple[int, tuple[tuple[Task, PlanApproval], ...]]] = {}

    async def of(self, tasks: Sequence[Task]) -> dict[TaskId, PlanApproval]:
        """Return the newest approval of each task whose definition is exactly what was approved."""
        missing = {task.id: task.definition for task in tasks}
        found: dict[TaskId, PlanApproval] = {}
        sessions = [each for each in await self._store.summaries() if each.ours and each.events and not each.problem]
        # Most plans are made in sessions without tasks.
        sessions.sort(key=lambda each: bool(each.tasks))
        for summary in sessions[:MOST_SESSIONS]:
            if not missing:
                break
            if summary.queued or summary.chat:
                continue
            for task, approval in await self._approved(summary):
                if missing.get(task.id) == task:
                    del missing[task.id]
                    found[task.id] = approval
        return found

    async def _approved(self, summary: SessionSummary) -> tuple[tuple[Task, PlanApproval], ...]:
        session = summary.id
        known = self._read.get(session)
        if known is None or known[0] != summary.events:
            try:
                events = await self._store.read(session)
                counted = await self._counted(session, events, _foreign_events(summary, events))
                approved = tuple(_approved_tasks(session, events, counted))
            except (JournalError, UsageError):
                approved = ()
            known = self._read[session] = (summary.events, approved)
        return known[1]

    async def _counted(self, session: SessionId, events: Sequence[Recorded], foreign: int) -> frozenset[int]:
        """Return the numbers of the decisions that count: those after the `foreign` events, and signed ones."""
        counted = {each.seq for each in decisions_of(events) if each.seq >= foreign}
        wrong = contradictions(session, events)
        for each in decisions_of(events[:foreign]):
            signed = each.event.signed
            if signed is None or each.seq in wrong or self._signatures is None:
                continue
            message = decision_message(signed.text)
            if await self._signatures.signer(SignedPurpose.DECISION, message, signed.signature):
                counted.add(each.seq)
        return frozenset(counted)


def _foreign_events(summary: SessionSummary, events: Sequence[Recorded]) -> int:
    """Return how many events, from the first on, this machine did not record in this session."""
    if summary.worker:
        return len(events)
    header = events[0].event if events else None
    copied = header.parent_seq if isinstance(header, SessionStarted) and header.parent is not None else None
    arrived = [each.seq for each in events if isinstance(each.event, SessionResumed) and each.event.arrived]
    return max(0 if copied is None else copied + 1, *arrived, 0)


def _approved_tasks(
    session: SessionId, events: Sequence[Recorded], counted: Collection[int]
) -> Iterator[tuple[Task, PlanApproval]]:
    """Yield the tasks of each plan that a person approved and that was written, as they were written; newest first.

    `counted` are the numbers of the decisions that count.
    """
    for step in newest_steps(events):
        approvals = [
            each
            for each in step.decisions
            if each.versions == step.versions and each.event.verdict is Verdict.APPROVE and each.seq in counted
        ]
        written = step.result is not None and step.result.event.result is ActionResult.OK
        if step.proposal.tool == PROPOSE_PLAN and written and approvals:
            yield from reversed(tuple(_taken(session, step.proposal, approvals[-1].event)))


def _taken(session: SessionId, proposal: Proposal, decision: ActionDecided) -> Iterator[tuple[Task, PlanApproval]]:
    if proposal.plan is None or decision.by.startswith(POLICY):
        return
    estimates: dict[TaskId, Estimate | None] = {each.task.id: each.estimate for each in proposal.plan.tasks}
    for task in proposal.plan.taken:
        approval = PlanApproval(f"{session}/{proposal.id}", decision.decider, estimates.get(task.id))
        yield task.definition, approval
