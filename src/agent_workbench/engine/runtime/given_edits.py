"""End of a task whose change is given by its edits: without a model, nothing that is refused can be tried again."""

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.proposals import APPLY_EDITS, CHECKS, COMMIT, ProposalStage, Verdict
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import newest_steps

_NAMES = {APPLY_EDITS: "the edits were", CHECKS: "the checks were", COMMIT: "the commit was"}


def why_given_up(run: TaskRun) -> str:
    """Return why a task with given edits cannot be done any more, empty if it can."""
    proposal = run.proposal
    if proposal is None or proposal.purpose is CheckPurpose.BASELINE:
        return ""
    if run.stage is ProposalStage.REFUSED:
        verdict = run.decision.verdict if run.decision is not None else Verdict.REJECT
        reason = run.decision.reason if run.decision is not None else ""
        what = f"{_NAMES.get(proposal.tool, f'{proposal.tool} was')} {verdict.past}"
        return f"{what}: {reason}" if reason else what
    if run.changed or run.stage is not ProposalStage.FINISHED:
        return ""
    steps = tuple(newest_steps(run.history))
    if any(step.undone is not None for step in steps):
        return "the edits were undone"
    told = next((step.result.event.observation for step in steps if step.result is not None), "")
    return f"the edits were not made: {told}" if told else "the edits were not made"
