"""The diffs that a task has tried so far and what became of each, read from its events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agent_workbench.core.checks import CheckPurpose, CheckResult, acceptable
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    Event,
    PatchApplied,
    ProposalReplaced,
    Recorded,
    TaskStarted,
    TestsFinished,
)
from agent_workbench.core.patch import patch_hash
from agent_workbench.core.proposals import KEEP_CHANGES, Proposal, Verdict
from agent_workbench.core.settings import GateKind

NAMED_TESTS = 5


class Fate(StrEnum):
    """What became of a diff; `checked` ones passed."""

    OPEN = "open"
    CHECKED = "checked"
    FAILED = "failed"
    REJECTED = "rejected"
    REFUSED = "refused"


LOST = frozenset({Fate.FAILED, Fate.REJECTED, Fate.REFUSED})
ENDS_THE_SAME = frozenset({Fate.FAILED, Fate.REJECTED})
"""A refusal may have come from what the machine was like at that moment; these two came from the diff itself."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One diff: the step that proposed it, the tree it was made against, and why it was lost if it was."""

    proposal: Proposal
    tree: str
    fate: Fate = Fate.OPEN
    why: str = ""

    @property
    def told(self) -> str:
        """One line for the model."""
        files = ", ".join(self.proposal.paths)
        edited = ", as the user edited it" if self.proposal.edited else ""
        return f"step {self.proposal.step}, diff of {files}{edited}: {self.why or self.fate}"


def attempts(history: Sequence[Recorded]) -> tuple[Attempt, ...]:
    """Return the diffs proposed since the task started, in order."""
    tree = ""
    found: list[Attempt] = []
    required, baseline = 0, None
    for recorded in history:
        event = recorded.event
        match event:
            case TaskStarted():
                tree, required, baseline = event.workspace.tree, event.required, None
            case TestsFinished(purpose=CheckPurpose.BASELINE):
                baseline = event.results
            case TestsFinished(purpose=CheckPurpose.AFTER_DIFF) if found and found[-1].fate is Fate.OPEN:
                found[-1] = _checked(found[-1], event.results, well=acceptable(event.results, baseline, required))
            case ActionProposed(proposal=proposal) if proposal.kind is GateKind.DIFF and proposal.tool != KEEP_CHANGES:
                found.append(Attempt(proposal, tree))
            case ProposalReplaced(proposal=proposal) if found and found[-1].proposal.id == proposal.id:
                found[-1] = replace(found[-1], proposal=proposal)
            case _ if found:
                found[-1] = _with(found[-1], event)
        if isinstance(event, PatchApplied):
            tree = event.tree
    return tuple(found)


def lost_before(history: Sequence[Recorded], diff: str, tree: str) -> Attempt | None:
    """Return the newest attempt that was this very diff on this very tree and came to nothing."""
    wanted = patch_hash(diff)
    same = (
        each
        for each in reversed(attempts(history))
        if each.fate in ENDS_THE_SAME and each.tree == tree and patch_hash(each.proposal.diff) == wanted
    )
    return next(same, None)


def _with(attempt: Attempt, event: Event) -> Attempt:
    match event:
        case ActionDecided(verdict=Verdict.REJECT) if event.proposal_id == attempt.proposal.id:
            who = "the user" if event.by == "user" else "the policy"
            return replace(attempt, fate=Fate.REJECTED, why=f"{who} rejected it: {event.reason or 'no reason given'}")
        case ActionFinished(result=ActionResult.REFUSED) if event.proposal_id == attempt.proposal.id:
            return replace(attempt, fate=Fate.REFUSED, why=event.observation)
        case _:
            return attempt


def _checked(attempt: Attempt, results: tuple[CheckResult, ...], *, well: bool) -> Attempt:
    if well:
        return replace(attempt, fate=Fate.CHECKED)
    return replace(attempt, fate=Fate.FAILED, why="; ".join(_failures(results)))


def _failures(results: Sequence[CheckResult]) -> Iterator[str]:
    for result in results:
        if result.passed:
            continue
        named = ", ".join(result.failed_tests[:NAMED_TESTS])
        more = len(result.failed_tests) - NAMED_TESTS
        which = f": {named}{f' and {more} more' if more > 0 else ''}" if named else ""
        yield f"{result.command} {'failed' if result.exit_code is not None else 'did not end'}{which}"
