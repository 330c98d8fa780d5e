"""Diffs that are in effect in a task's workspace: applied and not undone."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    PatchApplied,
    ProposalReplaced,
    Recorded,
    StepUndone,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import Proposal, is_person
from agent_workbench.core.state.session_state import TaskRun


class AppliedDiff(Struct, frozen=True):
    """A diff in effect, the tree of all approved content up to it, and who approved it: `by` of its decision."""

    proposal: Proposal
    tree: str
    by: str = ""


class LastAppliedDiff(Struct, frozen=True):
    """The newest diff in effect, and the tree before it was applied."""

    proposal: Proposal
    before: str


def applied_diffs(history: Sequence[Recorded]) -> Iterator[AppliedDiff]:
    """Yield the diffs in effect, newest first; `history` is read lazily, from its end."""
    undone: set[ProposalId] = set()
    applied: PatchApplied | None = None
    by = ""
    for recorded in reversed(history):
        match recorded.event:
            case StepUndone(proposal_id=proposal):
                undone.add(proposal)
            case PatchApplied() as event if event.proposal_id not in undone:
                applied, by = event, ""
            case ActionDecided() as event if applied is not None and event.proposal_id == applied.proposal_id:
                by = by or event.by
            case ActionProposed(proposal=proposed) | ProposalReplaced(proposal=proposed):
                if applied is not None and proposed.id == applied.proposal_id:
                    yield AppliedDiff(proposed, applied.tree, by)
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


def checks_reviewed(run: TaskRun, commands: Sequence[str]) -> bool:
    """Return True if the user approved exactly these commands in this run, and every diff that they would run on."""
    approved = bool(commands) and run.approved_checks == tuple(commands)
    return approved and all(is_person(diff.by) for diff in applied_diffs(run.history))
