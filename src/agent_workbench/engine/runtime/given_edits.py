"""End of a task whose change is given by its edits: without a model, nothing that is refused can be tried again."""

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import ActionFinished, StepUndone
from agent_workbench.core.proposals import APPLY_EDITS, CHECKS, COMMIT, ProposalStage, Verdict
from agent_workbench.core.state.session_state import TaskRun

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
    for recorded in reversed(run.history):
        match recorded.event:
            case StepUndone():
                return "the edits were undone"
            case ActionFinished():
                return f"the edits were not made: {recorded.event.observation}"
    return "the edits were not made"
