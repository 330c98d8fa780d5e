"""Diffs that are in effect in a task's workspace: applied and not undone."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.events import ActionProposed, PatchApplied, ProposalReplaced, Recorded, StepUndone
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.state.session_state import TaskRun


class AppliedDiff(Struct, frozen=True):
    """A diff in effect, and the tree of all approved content up to it."""

    proposal: Proposal
    tree: str


class LastAppliedDiff(Struct, frozen=True):
    """The newest diff in effect, and the tree before it was applied."""

    proposal: Proposal
    before: str


def applied_diffs(history: Sequence[Recorded]) -> Iterator[AppliedDiff]:
    """Yield the diffs in effect, newest first; `history` is read lazily, from its end."""
    undone: set[ProposalId] = set()
    applied: PatchApplied | None = None
    for recorded in reversed(history):
        match recorded.event:
            case StepUndone(proposal_id=proposal):
                undone.add(proposal)
            case PatchApplied() as event if event.proposal_id not in undone:
                applied = event
            case ActionProposed(proposal=proposed) | ProposalReplaced(proposal=proposed):
                if applied is not None and proposed.id == applied.proposal_id:
                    yield AppliedDiff(proposed, applied.tree)
                    applied = None
            case _:
                continue


def last_applied_diff(run: TaskRun) -> LastAppliedDiff | None:
    """Return the diff that an undo would revert, None if there is none."""
    standing = applied_diffs(run.history)
    last = next(standing, None)
    if last is None:
        return None
    older = next(standing, None)
    return LastAppliedDiff(last.proposal, older.tree if older is not None else run.workspace.tree)
