"""What became of a task in one run: the account that an export gives."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.checks.results import CheckResult
from agent_workbench.core.events import ActionDecided, ActionProposed, ModelAnswered, ProposalReplaced, StepUndone
from agent_workbench.core.events.log_lines import describe
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposals import POLICY, Proposal, Verdict
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.workspace import FileStat, MergeOutcome
from agent_workbench.views.transcript.answer_parts import take_apart

OUTSIDE = "outside of the session"


class Change(Struct, frozen=True):
    """A diff that stands in the outcome: the step it came with, why the model made it, the files it changed."""

    step: int
    why: str
    paths: tuple[str, ...]


class Decided(Struct, frozen=True):
    """What was decided at a gate, by whom (`user`, `policy:<rule>`) and why."""

    seq: int
    what: str
    verdict: Verdict
    by: str
    reason: str


class Undone(Struct, frozen=True):
    """A diff that the user took back: the step it came with, and the files it had changed."""

    seq: int
    step: int
    paths: tuple[str, ...]


class TaskReport(Struct, frozen=True):
    """A task's run with what it came to; `files` is None where git has the files no more, `merged` where it is not."""

    run: TaskRun
    changes: tuple[Change, ...]
    decisions: tuple[Decided, ...]
    checks: tuple[CheckResult, ...]
    files: tuple[FileStat, ...] | None
    undone: tuple[Undone, ...] = ()
    merged: MergeOutcome | None = None

    @property
    def asked(self) -> tuple[Decided, ...]:
        """What people decided."""
        return tuple(each for each in self.decisions if not each.by.startswith(POLICY))


def task_report(run: TaskRun, files: Sequence[FileStat] | None, merged_into: str = "") -> TaskReport:
    """Return the account of a run; `files` is how its tree differs from its base.

    `merged_into` is the branch that has the run's commit by now, as the session may not have merged it itself.
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


def _changes(run: TaskRun) -> Iterator[Change]:
    answers = [recorded.event for recorded in run.history if isinstance(recorded.event, ModelAnswered)]
    said = [(answer.step, take_apart(answer.text)) for answer in answers]
    why = {step: parts.thought for step, parts in said if parts.action}
    for diff in reversed(tuple(applied_diffs(run.history))):
        yield Change(diff.proposal.step, why.get(diff.proposal.step, ""), diff.proposal.paths)


def _undone(run: TaskRun) -> Iterator[Undone]:
    for recorded in run.history:
        if isinstance(recorded.event, StepUndone):
            yield Undone(recorded.seq, recorded.event.step, recorded.event.paths)


def _decisions(run: TaskRun) -> Iterator[Decided]:
    proposed: dict[ProposalId, Proposal] = {}
    for recorded in run.history:
        match recorded.event:
            case ActionProposed(proposal=proposal) | ProposalReplaced(proposal=proposal):
                proposed[proposal.id] = proposal
            case ActionDecided(proposal_id=name, verdict=verdict, by=by, reason=reason):
                what = describe(proposed[name]) if name in proposed else name
                yield Decided(recorded.seq, what, verdict, by, reason)
            case _:
                continue
