"""Report on one run of a task: changes, decisions, checks and files, for exports."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.checks.results import CheckResult
from agent_workbench.core.events import ModelAnswered, StepUndone
from agent_workbench.core.proposals import POLICY, Verdict
from agent_workbench.core.repo.workspace import FileStat, MergeOutcome
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import decisions_of
from agent_workbench.views.transcript.answer_parts import split_answer

OUTSIDE = "outside of the session"


class AppliedChange(Struct, frozen=True):
    """An applied diff: its step, the model's reason, and the changed files."""

    step: int
    why: str
    paths: tuple[str, ...]


class GateDecision(Struct, frozen=True):
    """A decision at a gate: who decided (`user`, `policy:<rule>`) and why."""

    seq: int
    what: str
    verdict: Verdict
    by: str
    reason: str


class UndoneChange(Struct, frozen=True):
    """An undone diff: its step and its files."""

    seq: int
    step: int
    paths: tuple[str, ...]


class TaskReport(Struct, frozen=True):
    """A run with its results. `files` is None if git no longer has them, `merged` if it was not merged."""

    run: TaskRun
    changes: tuple[AppliedChange, ...]
    decisions: tuple[GateDecision, ...]
    checks: tuple[CheckResult, ...]
    files: tuple[FileStat, ...] | None
    undone: tuple[UndoneChange, ...] = ()
    merged: MergeOutcome | None = None

    @property
    def asked(self) -> tuple[GateDecision, ...]:
        """Decisions that people made."""
        return tuple(each for each in self.decisions if not each.by.startswith(POLICY))


def task_report(run: TaskRun, files: Sequence[FileStat] | None, merged_into: str = "") -> TaskReport:
    """Return the report on a run; `files` is the difference between its tree and its base.

    `merged_into` is the branch that holds the run's commit by now; another session may have merged it.
    """
    elsewhere = MergeOutcome(run.commit, merged_into, OUTSIDE) if run.commit and merged_into else None
    return TaskReport(
        run,
        tuple(_changes(run)),
        tuple(_decisions(run)),
        run.results or (),
        tuple(files) if files is not None else None,
        tuple(_undone(run)),
        run.merged or elsewhere,
    )


def _changes(run: TaskRun) -> Iterator[AppliedChange]:
    answers = [recorded.event for recorded in run.history if isinstance(recorded.event, ModelAnswered)]
    said = [(answer.step, split_answer(answer.text)) for answer in answers]
    why = {step: parts.thought for step, parts in said if parts.action}
    for diff in reversed(tuple(applied_diffs(run.history))):
        yield AppliedChange(diff.proposal.step, why.get(diff.proposal.step, ""), diff.proposal.paths)


def _undone(run: TaskRun) -> Iterator[UndoneChange]:
    for recorded in run.history:
        if isinstance(recorded.event, StepUndone):
            yield UndoneChange(recorded.seq, recorded.event.step, recorded.event.paths)


def _decisions(run: TaskRun) -> Iterator[GateDecision]:
    for each in decisions_of(run.history):
        what = each.proposal.described if each.proposal is not None else each.event.proposal_id
        yield GateDecision(each.seq, what, each.event.verdict, each.event.by, each.event.reason)
