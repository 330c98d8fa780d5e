"""Report on one run of a task: its result, changes, decisions, checks and files."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.checks.results import CheckResult
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ModelAnswered, PlaybookFinished, StepUndone, TaskFinished
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import COMMIT, POLICY, Verdict
from agent_workbench.core.repo.workspace import FileStat, MergeOutcome
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.steps import decisions_of, newest_steps
from agent_workbench.core.task_result import ENDS, CheckOutcome, PlaybookOutcome, TaskResult
from agent_workbench.views.transcript_blocks import split_answer

OUTSIDE = "outside of the session"

MOST_PLAYBOOKS, MOST_HOSTS = 20, 50
"""Runs of playbooks in a result, and hosts of each."""


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


def task_result(state: SessionState, task: TaskId) -> TaskResult | None:
    """Return the result of the newest run of a task, None if it has not ended; later events do not change it."""
    run = state.run_of(task)
    if run is None or run.status not in ENDS:
        return None
    ends = [each for each in run.history if isinstance(each.event, TaskFinished)]
    if not ends:
        return None
    end = ends[-1]
    return TaskResult(
        task=task,
        status=run.status,
        reason=run.reason,
        exit_code=ExitCode.DONE if run.status is TaskStatus.DONE else ExitCode.FAILED,
        origin=run.definition.origin,
        source=run.definition.source,
        session=state.session,
        journal_head=f"{state.session}:{end.seq}:{end.hash}",
        branch=run.workspace.branch if run.commit else "",
        commit=run.commit or "",
        checks=tuple(CheckOutcome(each.command, each.exit_code, each.seconds) for each in run.results or ()),
        files=_committed_files(run),
        playbooks=_playbooks(run),
        tokens=run.tokens,
        dollars=run.dollars,
        started=run.history[0].time,
        finished=end.time,
    )


def _playbooks(run: TaskRun) -> tuple[PlaybookOutcome, ...]:
    """Return the runs of playbooks, the last ones of very many."""
    ended = [each.event for each in run.history if isinstance(each.event, PlaybookFinished)]
    return tuple(
        PlaybookOutcome(
            each.request.playbook,
            each.request.check,
            each.failed,
            tuple(host.text for host in each.hosts[:MOST_HOSTS]),
            each.lint.text if each.lint is not None else "",
        )
        for each in ended[-MOST_PLAYBOOKS:]
    )


def _committed_files(run: TaskRun) -> tuple[str, ...]:
    proposed = (step.proposal for step in newest_steps(run.history))
    return next((each.paths for each in proposed if each.tool == COMMIT), ()) if run.commit else ()
