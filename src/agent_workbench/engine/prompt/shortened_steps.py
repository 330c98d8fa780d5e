"""Steps beside a compaction whose text is elsewhere in the prompt, or no longer counts: each becomes one line."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionResult,
    ContextCompacted,
    ModelAnswered,
    PatchApplied,
    ProposalReplaced,
    Recorded,
    StepUndone,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import CHECKS, KEEP_CHANGES, Proposal, Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.engine.prompt.repeated_lines import added_lines, removed_lines
from agent_workbench.engine.prompt.step_history import steps_of

ACTION = "\nAction: "


class _Diff(Struct):
    """A diff that the model wrote, with the number of its answer and its outcome so far."""

    answer: int
    proposal: Proposal
    applied: bool = False
    lost: str = ""


def shortened_steps(history: Sequence[Recorded], compacted: ContextCompacted) -> Mapping[int, str]:
    """Return the texts that replace events after the compaction, by the events' numbers.

    A diff that is in the change so far, or that another one took the place of, becomes one line. So does the outcome of
    checks that is told apart.
    """
    newer = [recorded for recorded in steps_of(history) if recorded.seq > compacted.through_seq]
    texts: dict[int, str] = {}
    diffs = list(_diffs(newer))
    for place, diff in enumerate(diffs):
        if why := _why_short(diff, diffs[place + 1 :], compacted):
            texts[diff.answer] = _one_line(newer, diff, why)
    if compacted.failing:
        texts |= dict.fromkeys(_check_outcomes(newer), "The checks ran; how they ended is told above.")
    return texts


def replaces_earlier(history: Sequence[Recorded], through_seq: int) -> bool:
    """Return True if of the diffs after this event a later one changed lines that an earlier one had added."""
    diffs = [each for each in _diffs([each for each in steps_of(history) if each.seq > through_seq]) if each.applied]
    return any(_is_replaced(diff, diffs[place + 1 :]) for place, diff in enumerate(diffs))


def _diffs(newer: Sequence[Recorded]) -> Iterator[_Diff]:
    """Yield the diffs of these events in order, each with its outcome."""
    found: list[_Diff] = []
    answer = -1
    for recorded in newer:
        match recorded.event:
            case ModelAnswered():
                answer = recorded.seq
            case ActionProposed(proposal=proposal) if (
                proposal.kind is Permission.DIFF and proposal.tool != KEEP_CHANGES and answer >= 0
            ):
                found.append(_Diff(answer, proposal))
            case ProposalReplaced(proposal=proposal):
                for diff in _of(found, proposal.id):
                    diff.proposal = proposal
            case PatchApplied(proposal_id=name):
                for diff in _of(found, name):
                    diff.applied = True
            case StepUndone(proposal_id=name):
                for diff in _of(found, name):
                    diff.applied, diff.lost = False, "was undone"
            case ActionDecided(proposal_id=name, verdict=Verdict.REJECT | Verdict.SKIP):
                for diff in _of(found, name):
                    diff.lost = "was rejected"
            case ActionFinished(proposal_id=name, result=ActionResult.REFUSED):
                for diff in _of(found, name):
                    diff.lost = "was refused"
            case _:
                pass
    yield from found


def _of(diffs: Sequence[_Diff], name: ProposalId) -> list[_Diff]:
    return [diff for diff in diffs if diff.proposal.id == name]


def _why_short(diff: _Diff, later: Sequence[_Diff], compacted: ContextCompacted) -> str:
    """Return the reason why a diff is told in one line, empty if the prompt needs it."""
    if diff.lost:
        # The newest one may be what the model has to correct.
        return f"it {diff.lost}, and another one followed" if later else ""
    if not diff.applied or compacted.newest_apart:
        return ""
    gone = frozenset[str]().union(*(removed_lines(each.proposal.diff) for each in later if each.applied))
    in_change = added_lines(diff.proposal.diff) - gone <= added_lines(compacted.diff)
    return "what is left of it is in the change above" if in_change else ""


def _is_replaced(diff: _Diff, later: Sequence[_Diff]) -> bool:
    added = added_lines(diff.proposal.diff)
    return any(added & removed_lines(each.proposal.diff) for each in later)


def _one_line(newer: Sequence[Recorded], diff: _Diff, why: str) -> str:
    answer = next(each.event for each in newer if each.seq == diff.answer)
    said = answer.text if isinstance(answer, ModelAnswered) else ""
    head, action, rest = said.partition(ACTION)
    begun = f"{head}{action}{rest.partition(chr(10))[0]}\n" if action else ""
    return f"{begun}… the diff of {', '.join(diff.proposal.paths)}: {why} …"


def _check_outcomes(newer: Sequence[Recorded]) -> Collection[int]:
    checks = {
        each.event.proposal.id
        for each in newer
        if isinstance(each.event, ActionProposed) and each.event.proposal.tool == CHECKS
    }
    ended = (each for each in newer if isinstance(each.event, ActionFinished) and each.event.proposal_id in checks)
    # What a check found of the code is shown with its outcome, and nowhere else.
    return {each.seq for each in ended if isinstance(each.event, ActionFinished) and not each.event.shown}
