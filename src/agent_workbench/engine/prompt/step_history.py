"""Queries on a task's events: its steps, its answers, and those since the last compaction."""

from collections.abc import Iterator, Sequence

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import (
    ActionRejected,
    CodeRetrieved,
    CompactionAsked,
    ContextCompacted,
    ContextFilled,
    Event,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    Recorded,
    StepUndone,
    TestsFinished,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import COMPACT, Verdict, is_person
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.file_pieces import pieces_shown_by
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import decisions_of, newest_steps


def without_summaries(history: Sequence[Recorded]) -> Iterator[Recorded]:
    """Yield the events of `history` without those that request, decide and apply a summary."""
    summing_up = False
    compactions = (step for step in newest_steps(history) if step.first.tool == COMPACT)
    ours = {seq for step in compactions for seq in (step.seq, *(each.seq for each in step.later))}
    for recorded in history:
        match recorded.event:
            case PromptBuilt(purpose=purpose):
                summing_up = purpose is Purpose.SUMMARY
                mine = summing_up
            case ModelAnswered() | ModelInterrupted() | ActionRejected():
                mine = summing_up
            case ContextFilled(notes=notes):
                summing_up, mine = summing_up or notes, True
            case CompactionAsked() | ContextCompacted():
                mine = True
            case _:
                mine = recorded.seq in ours
        if not mine:
            yield recorded


def is_answer(event: Event) -> bool:
    """Return True if the event is an answer that later prompts repeat: complete, or cut."""
    return isinstance(event, ModelAnswered) or (isinstance(event, ModelInterrupted) and event.cut)


def answers_of(history: Sequence[Recorded]) -> list[Recorded]:
    """Return the model's answers, without summaries."""
    return [recorded for recorded in without_summaries(history) if is_answer(recorded.event)]


def answers_since_compaction(history: Sequence[Recorded]) -> list[Recorded]:
    """Return the model's answers after the newest compaction, without summaries."""
    return [recorded for recorded in steps_since_compaction(history) if is_answer(recorded.event)]


def count_answers(history: Sequence[Recorded], purpose: Purpose) -> int:
    """Return the number of summaries, or (for any other purpose) of answers that are still valid.

    An answer is not valid if the user rejected it, or undid its diff or an earlier one.
    """
    if purpose is Purpose.SUMMARY:
        return sum(isinstance(recorded.event, ModelAnswered) for recorded in history) - sum(
            isinstance(recorded.event, ModelAnswered) for recorded in answers_of(history)
        )
    standing: list[int] = []
    rejected = {
        each.seq for each in decisions_of(history) if each.event.verdict is Verdict.REJECT and is_person(each.event.by)
    }
    for recorded in without_summaries(history):
        match recorded.event:
            case ModelAnswered(step=step) | ModelInterrupted(step=step) if is_answer(recorded.event):
                standing.append(step)
            case StepUndone(step=undone):
                standing = [step for step in standing if step < undone]
            case _ if recorded.seq in rejected:
                standing = standing[:-1]
            case _:
                continue
    return len(standing)


def failed_attempts(run: TaskRun) -> int:
    """Return the number of failed attempts since the checks passed last: red checks, and answers that were no step.

    None has failed where an attempt that is kept is built on; all have where that is given up.
    """
    failed, undone = 0, False
    for recorded in without_summaries(run.history):
        match recorded.event:
            case TestsFinished(purpose=CheckPurpose.AFTER_DIFF | CheckPurpose.FINAL, results=results):
                failed = 0 if run.acceptable(results) else failed + 1
            case ModelInterrupted(cut=True) | ActionRejected(empty_finish=False):
                failed += 1
            case StepUndone(afresh=False):
                failed = 0
            case StepUndone():
                undone = True
                continue
            case CodeRetrieved():
                failed = failed if undone else 0
            case _:
                continue
        undone = False
    return failed


def last_compaction(history: Sequence[Recorded]) -> ContextCompacted | None:
    """Return the newest compaction, None if there was none."""
    return next((each.event for each in reversed(history) if isinstance(each.event, ContextCompacted)), None)


def steps_since_compaction(history: Sequence[Recorded]) -> list[Recorded]:
    """Return the step events after the newest compaction, all if there was none."""
    compacted = max((each.seq for each in history if isinstance(each.event, ContextCompacted)), default=-1)
    return [recorded for recorded in without_summaries(history) if recorded.seq > compacted]


def shown_at(history: Sequence[Recorded], place: str) -> Chunk | None:
    """Return the newest piece of code or note shown at `place` since the task started, None if there was none."""
    newest = (
        chunk for recorded in reversed(history) for chunk in pieces_shown_by(recorded.event) if chunk.place == place
    )
    return next(newest, None)
