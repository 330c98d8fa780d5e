"""Fold of the work's events: effects of approved actions, checks, checkpoints, commits, and the end of a task."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose, all_passed
from agent_workbench.core.events import (
    FAILING_FIRST,
    ActionFinished,
    ActionResult,
    ActionStarted,
    CheckpointTaken,
    PatchApplied,
    PlaybookFinished,
    StepUndone,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
    TestsFinished,
    WorkEvent,
)
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import CHECKS, COMPACT, END_UNCHANGED
from agent_workbench.core.settings import ReflexionTiming
from agent_workbench.core.state.applied_diffs import wants_these_failures
from agent_workbench.core.state.session_state import ENDED, Phase, SessionState, TaskRun
from agent_workbench.core.state.work import Gate
from agent_workbench.core.task_words import wants_only_checks

FINISH = "finish"


def fold_work(state: SessionState, run: TaskRun, event: WorkEvent) -> SessionState:
    """Return the state after an event of the work group; `run` is the one whose gate it moved."""
    after = _fold_run(run, event, _timing(state))
    ended = after.undoing is not None and after.phase in ENDED
    return replace(state, main=replace(after, undoing=None) if ended else after)


def _timing(state: SessionState) -> ReflexionTiming:
    return state.config.limits.reflexion if state.config is not None else ReflexionTiming.ALWAYS


def _fold_run(run: TaskRun, event: WorkEvent, timing: ReflexionTiming) -> TaskRun:
    match event:
        case ActionFinished():
            return _finished(run, event)
        case PatchApplied():
            return _applied(run, event)
        case StepUndone():
            return _undone(run, event)
        case ActionStarted() | PlaybookFinished():
            return run
        case CheckpointTaken():
            return replace(run, checkpoint=event.checkpoint)
        case TestsFinished():
            return _tested(run, event, timing)
        case TaskCommitted():
            reason = f"committed; {run.checks_text}" if run.old_failures else "committed"
            return replace(run, commit=event.commit, phase=Phase.CLOSING, status=TaskStatus.DONE, reason=reason)
        case TaskMerged():
            return replace(run, merged=event.outcome, phase=Phase.OVER)
        case TaskRolledBack():
            return replace(
                run,
                tree=run.workspace.tree,
                phase=Phase.CLOSING,
                status=TaskStatus.FAILED,
                reason=event.reason,
                gate=Gate(decision=run.gate.decision),
            )
        case TaskFinished():
            return replace(run, phase=Phase.OVER, status=event.status, reason=event.reason)
    assert_never(event)


def _finished(run: TaskRun, event: ActionFinished) -> TaskRun:
    done = replace(run, working_seconds=run.working_seconds + event.seconds)
    if event.resources is not None:
        used = event.resources if run.resources is None else run.resources.plus(event.resources)
        done = replace(done, resources=used)
    if run.gate.proposal is not None and run.gate.tool == COMPACT:
        replaced = run.notes_full and event.result is ActionResult.OK
        return done.with_notes_settled(len(run.gate.proposal.text)) if replaced else done
    if event.result is ActionResult.STOPPED:
        return _stopped(done)
    if event.result is not ActionResult.OK:
        return replace(done, failures=run.failures + 1)
    if run.gate.tool == FINISH:
        return _wants_to_finish(done)
    if run.gate.tool == END_UNCHANGED:
        return replace(done, phase=Phase.CLOSING, failures=0, reflected=0)
    return done if run.phase in (Phase.CHECKING, Phase.REFLECTING) else replace(done, failures=0, reflected=0)


def _stopped(run: TaskRun) -> TaskRun:
    """Return the run after the user stopped an action: it counts as no failure, and checks are not repeated."""
    after = {Phase.BASELINE: Phase.RETRIEVING, Phase.CHECKING: Phase.STEPPING}
    checks = run.gate.tool == CHECKS
    return replace(run, phase=after.get(run.phase, run.phase)) if checks else run


def _applied(run: TaskRun, event: PatchApplied) -> TaskRun:
    """Return the run with a diff applied. Given edits are the whole change, so that the commit comes next."""
    given = bool(run.definition.edits)
    unchecked = Phase.COMMITTING if given else Phase.STEPPING
    purpose = CheckPurpose.FINAL if given else CheckPurpose.AFTER_DIFF
    return replace(run, tree=event.tree, phase=Phase.CHECKING if run.checks else unchecked, check_purpose=purpose)


def _undone(run: TaskRun, event: StepUndone) -> TaskRun:
    """Return the run with the diff undone: the checks no longer count, nor do failures caused by it.

    Where the model tries again afresh its failures count, and all diffs of the attempt are undone.
    """
    if event.afresh:
        begun = event.tree == run.attempt_base and not run.kept_in_vain
        again = Phase.STEPPING if begun else Phase.REFLECTING
        fresh = replace(run, tree=event.tree, checked_tree="", results=None, phase=again, undoing=None)
        return replace(fresh, prompt_parts=0, last_figures=None)
    return replace(
        run,
        tree=event.tree,
        checked_tree="",
        results=None,
        failures=0,
        reflected=0,
        phase=run.phase if run.phase is Phase.COMPACTING else Phase.STEPPING,
        compacts_for=Phase.STEPPING,
        undoing=None,
    )


def _wants_to_finish(run: TaskRun) -> TaskRun:
    if run.passes or not run.checks:
        return replace(run, phase=Phase.COMMITTING, failures=0, reflected=0)
    return replace(run, phase=Phase.CHECKING, check_purpose=CheckPurpose.FINAL)


def _tested(run: TaskRun, event: TestsFinished, timing: ReflexionTiming) -> TaskRun:
    if event.purpose is CheckPurpose.BASELINE:
        return replace(run, baseline=event.results, phase=Phase.RETRIEVING)
    if event.purpose is CheckPurpose.ASKED:
        return run
    tested = replace(run, results=event.results, checked_tree=run.tree)
    if not run.acceptable(event.results):
        if run.definition.edits:
            return replace(tested, phase=Phase.ROLLING_BACK, reason=_failing(event))
        if wants_these_failures(run, event):
            return replace(tested, phase=Phase.STEPPING)
        phase = Phase.REFLECTING if _reflects(run, timing) else Phase.STEPPING
        return replace(tested, phase=phase, failures=run.failures + 1)
    ends = event.purpose is CheckPurpose.FINAL or _is_all(run, event)
    after = Phase.COMMITTING if ends else Phase.STEPPING
    return replace(tested, phase=after, failures=0, reflected=0)


def _is_all(run: TaskRun, event: TestsFinished) -> bool:
    """Return True if the task was to make its failing acceptance pass, and nothing more: the commit comes next."""
    passes = run.failed_before and run.changed and all_passed(event.results[: run.required])
    return passes and run.wording >= FAILING_FIRST and wants_only_checks(run.definition)


def _failing(event: TestsFinished) -> str:
    """Return which check does not pass with the edits of the task."""
    failed = next((each for each in event.results if not each.passed), None)
    if failed is None:
        return "the checks do not pass with the edits"
    stopped = f"did not end within {failed.seconds:.3g} s"
    how = stopped if failed.exit_code is None else f"ended with exit code {failed.exit_code}"
    return f"the checks do not pass with the edits: `{failed.command}` {how}"


def _reflects(run: TaskRun, timing: ReflexionTiming) -> bool:
    """Return True if the model is asked for a reflexion on checks that fail after `run`."""
    if timing is ReflexionTiming.AFTER_SECOND_FAILURE:
        return run.results is not None and not run.acceptable(run.results)
    return timing is ReflexionTiming.ALWAYS
