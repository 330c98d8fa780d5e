"""Approvals of planned tasks: the proposals that a person approved, found in the journals of the sessions."""

from collections.abc import Iterator, Sequence

from agent_workbench.core.dispatch.preparation import PlanApproval
from agent_workbench.core.errors import JournalError, UsageError
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    ProposalReplaced,
    Recorded,
)
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.plan.estimates import Estimate
from agent_workbench.core.ports.stores import SessionStore
from agent_workbench.core.proposals import POLICY, PROPOSE_PLAN, Proposal, Verdict

MOST_SESSIONS = 200


class PlanApprovals:
    """Approved plans in the newest sessions of a store. A journal is read once as long as it does not grow.

    `store.read` proves each journal. Those of others count only as far as their signed heads say so (`summary.ours`).
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._read: dict[SessionId, tuple[int, tuple[tuple[Task, PlanApproval], ...]]] = {}

    async def of(self, tasks: Sequence[Task]) -> dict[TaskId, PlanApproval]:
        """Return the newest approval of each task whose definition is exactly what was approved."""
        missing = {task.id: task.definition for task in tasks}
        found: dict[TaskId, PlanApproval] = {}
        sessions = [each for each in await self._store.summaries() if each.ours and not each.problem]
        # Most plans are made in sessions without tasks.
        sessions.sort(key=lambda each: bool(each.tasks))
        for summary in sessions[:MOST_SESSIONS]:
            if not missing:
                break
            if summary.queued or summary.chat:
                continue
            for task, approval in await self._approved(summary.id, summary.events):
                if missing.get(task.id) == task:
                    del missing[task.id]
                    found[task.id] = approval
        return found

    async def _approved(self, session: SessionId, events: int) -> tuple[tuple[Task, PlanApproval], ...]:
        known = self._read.get(session)
        if known is None or known[0] != events:
            try:
                approved = tuple(_approved_tasks(session, await self._store.read(session)))
            except (JournalError, UsageError):
                approved = ()
            known = self._read[session] = (events, approved)
        return known[1]


def _approved_tasks(session: SessionId, events: Sequence[Recorded]) -> Iterator[tuple[Task, PlanApproval]]:
    """Yield the tasks of each plan that a person approved and that was written, as they were written; newest first."""
    shown: dict[ProposalId, Proposal] = {}
    decided: dict[ProposalId, ActionDecided] = {}
    found: list[tuple[Task, PlanApproval]] = []
    for recorded in events:
        match recorded.event:
            case ActionProposed(proposal=proposal) | ProposalReplaced(proposal=proposal) if (
                proposal.tool == PROPOSE_PLAN
            ):
                shown[proposal.id] = proposal
                decided.pop(proposal.id, None)
            case ActionDecided(proposal_id=id, verdict=Verdict.APPROVE) as decision if id in shown:
                decided[id] = decision
            case ActionFinished(proposal_id=id, result=ActionResult.OK) if id in decided:
                found += _taken(session, shown[id], decided[id])
            case _:
                continue
    yield from reversed(found)


def _taken(session: SessionId, proposal: Proposal, decision: ActionDecided) -> Iterator[tuple[Task, PlanApproval]]:
    if proposal.plan is None or decision.by.startswith(POLICY):
        return
    estimates: dict[TaskId, Estimate | None] = {each.task.id: each.estimate for each in proposal.plan.tasks}
    for task in proposal.plan.taken:
        approval = PlanApproval(f"{session}/{proposal.id}", decision.decider, estimates.get(task.id))
        yield task.definition, approval
