"""Steps beside a compaction whose text is elsewhere in the prompt, or no longer counts: each becomes one line."""

from collections.abc import Collection, Mapping, Sequence

from agent_workbench.core.events import ActionResult, ContextCompacted, Recorded
from agent_workbench.core.proposals import CHECKS, KEEP_CHANGES, Proposal, Verdict
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.steps import Step, steps_of
from agent_workbench.engine.prompt.repeated_lines import added_lines, removed_lines
from agent_workbench.engine.prompt.step_history import without_summaries

ACTION = "\nAction: "


def shortened_steps(history: Sequence[Recorded], compacted: ContextCompacted) -> Mapping[int, str]:
    """Return the texts that replace events after the compaction, by the events' numbers.

    A diff that is in the change so far, or that another one took the place of, becomes one line. So does the outcome of
    checks that is told apart.
    """
    newer = [recorded for recorded in without_summaries(history) if recorded.seq > compacted.through_seq]
    texts: dict[int, str] = {}
    diffs = _diffs(newer)
    for place, diff in enumerate(diffs):
        if diff.answer is not None and (why := _why_short(diff, diffs[place + 1 :], compacted)):
            texts[diff.answer.seq] = _one_line(diff.answer.event.text, diff.proposal, why)
    if compacted.failing:
        texts |= dict.fromkeys(_check_outcomes(newer), "The checks ran; how they ended is told above.")
    return texts


def replaces_earlier(history: Sequence[Recorded], through_seq: int) -> bool:
    """Return True if of the diffs after this event a later one changed lines that an earlier one had added."""
    newer = [each for each in without_summaries(history) if each.seq > through_seq]
    diffs = [each for each in _diffs(newer) if _stands(each)]
    return any(_is_replaced(diff, diffs[place + 1 :]) for place, diff in enumerate(diffs))


def _diffs(newer: Sequence[Recorded]) -> list[Step]:
    """Return the steps of these events whose diffs the model wrote, in order."""
    return [
        step
        for step in steps_of(newer)
        if step.proposal.kind is Permission.DIFF and step.proposal.tool != KEEP_CHANGES and step.answer is not None
    ]


def _stands(diff: Step) -> bool:
    return diff.applied is not None and diff.undone is None


def _lost(diff: Step) -> str:
    """Return what became of a diff that is not in effect, empty if it is, or may still be."""
    if diff.undone is not None:
        return "was undone"
    if diff.decision is not None and diff.decision.event.verdict in {Verdict.REJECT, Verdict.SKIP}:
        return "was rejected"
    refused = diff.result is not None and diff.result.event.result is ActionResult.REFUSED
    return "was refused" if refused else ""


def _why_short(diff: Step, later: Sequence[Step], compacted: ContextCompacted) -> str:
    """Return the reason why a diff is told in one line, empty if the prompt needs it."""
    if lost := _lost(diff):
        # The newest one may be what the model has to correct.
        return f"it {lost}, and another one followed" if later else ""
    if not _stands(diff) or compacted.newest_apart:
        return ""
    gone = frozenset[str]().union(*(removed_lines(each.proposal.diff) for each in later if _stands(each)))
    in_change = added_lines(diff.proposal.diff) - gone <= added_lines(compacted.diff)
    return "what is left of it is in the change above" if in_change else ""


def _is_replaced(diff: Step, later: Sequence[Step]) -> bool:
    added = added_lines(diff.proposal.diff)
    return any(added & removed_lines(each.proposal.diff) for each in later)


def _one_line(answer: str, proposal: Proposal, why: str) -> str:
    head, action, rest = answer.partition(ACTION)
    begun = f"{head}{action}{rest.partition(chr(10))[0]}\n" if action else ""
    return f"{begun}… the diff of {', '.join(proposal.paths)}: {why} …"


def _check_outcomes(newer: Sequence[Recorded]) -> Collection[int]:
    ended = [step.result for step in steps_of(newer) if step.proposal.tool == CHECKS]
    # What a check found of the code is shown with its outcome, and nowhere else.
    return {each.seq for each in ended if each is not None and not each.event.shown}
