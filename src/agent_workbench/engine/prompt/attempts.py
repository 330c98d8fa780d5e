"""Diffs that a task has proposed, each with its outcome, and the request for a reflexion on them."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.judges import excused_suite
from agent_workbench.core.checks.results import CheckPurpose, CheckResult, acceptable
from agent_workbench.core.events import (
    FAILING_FIRST,
    ActionResult,
    PatchApplied,
    Recorded,
    StepUndone,
    TaskStarted,
    TestsFinished,
    UserSaid,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.patch.values import HunkFate, Patch, patch_hash, selectable_ids
from agent_workbench.core.proposals import KEEP_CHANGES, HunkVerdict, Proposal, Verdict, is_person
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import adds_failing_tests
from agent_workbench.core.state.steps import Step, newest_steps
from agent_workbench.engine.runtime.budget import clip

NAMED_TESTS = 5

QUESTION = """\
Write one paragraph that begins with `Reflexion: `: what was wrong, how you know, and what you will do differently. \
No action yet."""
DIFF_CHARS = 3_000
MOST_TOLD = 8
WHY_CHARS = 300


class Fate(StrEnum):
    """Outcome of a diff; `checked`: its checks passed."""

    OPEN = "open"
    CHECKED = "checked"
    FAILED = "failed"
    REJECTED = "rejected"
    REFUSED = "refused"
    UNDONE = "undone"


LOST = frozenset({Fate.FAILED, Fate.REJECTED, Fate.REFUSED, Fate.UNDONE})


class Attempt(Struct, frozen=True):
    """One diff: the step that proposed it, its base tree, and why it failed, was rejected or undone (`why`).

    `settled`: the user has written nothing since, so they would reject a rejected diff again.
    """

    proposal: Proposal
    tree: str
    fate: Fate = Fate.OPEN
    why: str = ""
    settled: bool = True

    @property
    def told(self) -> str:
        """Description for the model, in one line."""
        files = ", ".join(self.proposal.paths)
        edited = ", as the user edited it" if self.proposal.edited else ""
        taken = ", of which the user left something out" if self.proposal.hunks else ""
        return f"step {self.proposal.step}, diff of {files}{edited}{taken}: {self.why or self.fate}"


class LeftHunk(Struct, frozen=True):
    """A hunk that the user left out of the diff of `step`, with a reason; `tree` is the result of the rest."""

    hunk: HunkVerdict
    step: int
    tree: str


class AttemptCollector:
    """Collector of the diffs in a task's events (`found`), and of hunks left out with a reason (`left`)."""

    def __init__(self, history: Sequence[Recorded]) -> None:
        self.found: list[Attempt] = []
        self.left: list[LeftHunk] = []
        self._tree = ""
        self._applied: ProposalId | None = None
        self._started: TaskStarted | None = None
        self._baseline: tuple[CheckResult, ...] | None = None
        self._results: tuple[CheckResult, ...] = ()
        diffs = (step for step in newest_steps(history) if step.first.kind is Permission.DIFF)
        self._proposed = {step.seq: step for step in diffs if step.first.tool != KEEP_CHANGES}

    def take(self, recorded: Recorded) -> None:
        """Process the task's next event."""
        if (step := self._proposed.get(recorded.seq)) is not None:
            self.found.append(_attempt(step, self._tree))
        match recorded.event:
            case TaskStarted() as event:
                self._started, self._tree, self._baseline, self._results = event, event.workspace.tree, None, ()
            case TestsFinished(purpose=CheckPurpose.BASELINE) as event:
                self._baseline = event.results
            case TestsFinished(purpose=CheckPurpose.AFTER_DIFF | CheckPurpose.FINAL) as event if self._is_checked():
                self.found[-1] = _checked(self.found[-1], event.results, well=self._went_well(event))
                self._results = event.results
            case PatchApplied() as event:
                self._tree, self._applied = event.tree, event.proposal_id
                self.left += self._left_of(event)
            case StepUndone() as event:
                self._tree, self._applied = event.tree, None
                # The checks decided about an attempt that the workbench gave up.
                self.found = [
                    _taken_back(each) if not event.afresh and each.proposal.id == event.proposal_id else each
                    for each in self.found
                ]
            case UserSaid():
                self.found = [replace(each, settled=False) for each in self.found]
                self.left = []
            case _:
                pass

    def _went_well(self, event: TestsFinished) -> bool:
        started, before = self._started, self._baseline
        excused: tuple[str, ...] = ()
        if started is not None and started.wording >= FAILING_FIRST and before is not None:
            if event.purpose is CheckPurpose.AFTER_DIFF and adds_failing_tests(
                self.found[-1].proposal, event.results, (before, self._results)
            ):
                return True
            excused = excused_suite(started.definition, started.suite, before)
        return acceptable(event.results, before, started.required if started is not None else 0, excused)

    def _left_of(self, applied: PatchApplied) -> list[LeftHunk]:
        newest = self.found[-1].proposal if self.found else None
        if newest is None or newest.id != applied.proposal_id:
            return []
        left = [hunk for hunk in newest.hunks if hunk.fate is HunkFate.LEFT and hunk.reason]
        return [LeftHunk(hunk, newest.step, applied.tree) for hunk in left]

    def _is_checked(self) -> bool:
        """Return True if the checks saw the newest diff; it may have been rejected and others made."""
        newest = self.found[-1] if self.found else None
        return newest is not None and newest.fate is Fate.OPEN and newest.proposal.id == self._applied


def attempts(history: Sequence[Recorded]) -> tuple[Attempt, ...]:
    """Return the diffs proposed since the task started, in order."""
    return tuple(_collect(history).found)


def _collect(history: Sequence[Recorded]) -> AttemptCollector:
    collector = AttemptCollector(history)
    for recorded in history:
        collector.take(recorded)
    return collector


def lost_before(history: Sequence[Recorded], diff: str, tree: str) -> Attempt | None:
    """Return the newest attempt with this diff on this tree that failed, was rejected or undone."""
    wanted = patch_hash(diff)
    same = (
        each
        for each in reversed(attempts(history))
        if _ends_the_same(each) and each.tree == tree and patch_hash(each.proposal.diff) == wanted
    )
    return next(same, None)


def left_before(history: Sequence[Recorded], patch: Patch, tree: str) -> LeftHunk | None:
    """Return a hunk of this diff that the user left out before, with a reason.

    None if a file was changed or the user wrote something since.
    """
    left = [each for each in _collect(history).left if each.tree == tree]
    wanted = frozenset(selectable_ids(patch)) if left else frozenset()
    return next((each for each in left if each.hunk.id in wanted), None)


def _ends_the_same(attempt: Attempt) -> bool:
    """Return True if the diff itself failed; a refusal may depend on the machine."""
    return attempt.fate is Fate.FAILED or (attempt.fate in {Fate.REJECTED, Fate.UNDONE} and attempt.settled)


def _taken_back(attempt: Attempt) -> Attempt:
    return replace(attempt, fate=Fate.UNDONE, why="the user took it back after it was applied")


def _attempt(step: Step, tree: str) -> Attempt:
    """Return the attempt of a step, as far as no checks and no later event have a part in it."""
    proposal, decided, ended = step.proposal, step.decision, step.result
    if decided is not None and decided.event.verdict is Verdict.REJECT:
        who = "the user" if is_person(decided.event.by) else "the policy"
        why = f"{who} rejected it: {decided.event.reason or 'no reason given'}"
        return Attempt(proposal, tree, Fate.REJECTED, why)
    if ended is not None and ended.event.result is ActionResult.REFUSED:
        return Attempt(proposal, tree, Fate.REFUSED, ended.event.observation)
    return Attempt(proposal, tree)


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


def reflexion_request(tried: Sequence[Attempt], wording: int) -> str:
    """Return the request for a reflexion after these attempts; the same attempts give the same text."""
    lost = [each for each in tried if each.fate in LOST]
    parts = ["That did not work."]
    # Since version 1 the outcome of the diff told how the lines read that are not the model's own.
    if not wording and tried and tried[-1].fate is Fate.FAILED and _differs(tried[-1]):
        parts.append(f"The diff that was applied is not quite yours:\n{clip(tried[-1].proposal.diff, DIFF_CHARS)}")
    if len(lost) > 1:
        told = [f"- {clip(each.told, WHY_CHARS)}" for each in lost[-MOST_TOLD:]]
        earlier = [f"- … and {len(lost) - MOST_TOLD} before these"] if len(lost) > MOST_TOLD else []
        parts.append("\n".join(["Tried so far, and none of it worked:", *earlier, *told]))
    return "\n\n".join([*parts, QUESTION])


def _differs(attempt: Attempt) -> bool:
    return attempt.proposal.edited or bool(attempt.proposal.repaired or attempt.proposal.hunks)
