"""Comparison of two sessions of one repository: where they diverge, what each run cost, and its result."""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckResult
from agent_workbench.core.events import ModelAnswered, Recorded
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import UNASKED, Verdict
from agent_workbench.core.repo.workspace import FileStat
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.steps import decisions_of


class RunFigures(Struct, frozen=True):
    """Figures of a run. `new_tokens` and `again_tokens` are prompt tokens read for the first time and re-read.

    `seconds` is time worked, without waiting at the gate. `by_hunk` counts the `approved` diffs that were approved in
    part.
    """

    steps: int = 0
    answers: int = 0
    new_tokens: int = 0
    again_tokens: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0
    dollars: float = 0.0
    approved: int = 0
    rejected: int = 0
    by_hunk: int = 0

    def minus(self, other: "RunFigures") -> "RunFigures":
        """Return the difference to `other`."""
        return RunFigures(
            self.steps - other.steps,
            self.answers - other.answers,
            self.new_tokens - other.new_tokens,
            self.again_tokens - other.again_tokens,
            self.answer_tokens - other.answer_tokens,
            self.seconds - other.seconds,
            self.dollars - other.dollars,
            self.approved - other.approved,
            self.rejected - other.rejected,
            self.by_hunk - other.by_hunk,
        )


class ComparedSession(Struct, frozen=True):
    """One of two compared sessions: its run of the compared task, None if it has no run.

    `since` are the figures after the sessions diverged; all of them if they share no event. `files` is the difference
    between result and base, None if git no longer has the files.
    """

    session: SessionId
    task: TaskId | None = None
    status: TaskStatus | None = None
    reason: str = ""
    tree: str = ""
    base: str = ""
    checks: tuple[CheckResult, ...] = ()
    in_all: RunFigures = field(default_factory=RunFigures)
    since: RunFigures = field(default_factory=RunFigures)
    files: tuple[FileStat, ...] | None = None


class Comparison(Struct, frozen=True):
    """Two sessions side by side. `parted` is the last common event (None: no common step), `common` its text.

    `between` are the files that differ between the two results and `diff` is their diff, from first to second. Both are
    None if git no longer has one of the results.
    """

    first: ComparedSession
    second: ComparedSession
    parted: int | None = None
    step: int = 0
    common: str = ""
    between: tuple[FileStat, ...] | None = None
    diff: str | None = None


def compare(first: Sequence[Recorded], second: Sequence[Recorded]) -> Comparison:
    """Return the comparison of two journals, without the fields that only git can fill."""
    ours, others = fold_all(first), fold_all(second)
    run, other = _runs(ours, others)
    count = common_events(first, second)
    before = fold_all(first[:count])
    comparison = Comparison(_side(ours, run, before), _side(others, other, before))
    if not count:
        return comparison
    step = before.run.step if before.run is not None else 0
    said = next(filter(None, (log_line(each.event) for each in reversed(first[:count]))), "")
    return replace(comparison, parted=first[count - 1].seq, step=step, common=said)


def common_events(first: Sequence[Recorded], second: Sequence[Recorded]) -> int:
    """Return the number of common first events. A fork keeps number, time and kind of the events it copied.

    Texts are not compared: a value that became secret later is redacted in a fork but not in its parent.
    """
    count = 0
    for one, other in zip(first, second, strict=False):
        if (one.seq, one.time, type(one.event)) != (other.seq, other.time, type(other.event)):
            break
        count += 1
    return count


def _runs(first: SessionState, second: SessionState) -> tuple[TaskRun | None, TaskRun | None]:
    """Return the newest runs of the first session's newest task that the second has too; else each newest run."""
    ours, others = _newest_first(first), _newest_first(second)
    for run in ours:
        other = next((each for each in others if each.task == run.task), None)
        if other is not None:
            return run, other
    return next(iter(ours), None), next(iter(others), None)


def _newest_first(state: SessionState) -> list[TaskRun]:
    return list(reversed(state.runs))


def _side(state: SessionState, run: TaskRun | None, before: SessionState) -> ComparedSession:
    if run is None:
        return ComparedSession(state.session)
    given = before.run_of(run.task)
    in_all = _amounts(run)
    return ComparedSession(
        session=state.session,
        task=run.task,
        status=run.status,
        reason=run.reason,
        tree=run.tree,
        base=run.workspace.base,
        checks=run.results or (),
        in_all=in_all,
        since=in_all.minus(_amounts(given)) if given is not None else in_all,
    )


def _amounts(run: TaskRun) -> RunFigures:
    answers = [each.event for each in run.history if isinstance(each.event, ModelAnswered)]
    decided = [each for each in decisions_of(run.history) if each.event.by != UNASKED]
    approved = [each.proposal for each in decided if each.event.verdict is Verdict.APPROVE]
    return RunFigures(
        steps=run.step,
        answers=len(answers),
        new_tokens=run.reads.new_tokens,
        again_tokens=run.reads.again_tokens,
        answer_tokens=sum(each.figures.answer_tokens for each in answers),
        seconds=run.working_seconds,
        dollars=run.dollars,
        approved=len(approved),
        rejected=sum(each.event.verdict is Verdict.REJECT for each in decided),
        by_hunk=sum(bool(proposal.hunks) for proposal in approved if proposal is not None),
    )
