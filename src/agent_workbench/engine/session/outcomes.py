"""Outcomes of an unattended run: the trouble that stopped a move, one outcome a task, and the exit code."""

from collections.abc import Iterable, Mapping, Sequence

from agent_workbench.core.errors import ExitCode, JournalError, LockedError, ModelError, StorageError, WorkbenchError
from agent_workbench.core.events import TroubleMet
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Owner, Plan, TaskStatus
from agent_workbench.core.session_request import SessionEnd, TaskOutcome, TaskOutcomeKind
from agent_workbench.engine.flow import Execute, Move, Recover

# Their reasons were printed when they happened.
_NAMES_ALONE = {TaskOutcomeKind.FAILED, TaskOutcomeKind.DONE}
# Exit codes that concern one task only. Any other stops the whole run.
OF_TASKS = {
    ExitCode.DONE: TaskOutcomeKind.DONE,
    ExitCode.FAILED: TaskOutcomeKind.FAILED,
    ExitCode.PARKED: TaskOutcomeKind.PARKED,
    ExitCode.LOCKED: TaskOutcomeKind.HELD,
}

LOCKED, JOURNAL, STORAGE, MODEL = "locked", "journal", "storage", "model"
_SOURCES: tuple[tuple[type[WorkbenchError], str], ...] = (
    (LockedError, LOCKED),  # is a JournalError too
    (JournalError, JOURNAL),
    (StorageError, STORAGE),
    (ModelError, MODEL),
)
# Sources as journals spell them since 0.1.
_MOVE_SOURCES: dict[type[Move], str] = {Execute: "carry", Recover: "settle"}
_EXIT_CODES = {LOCKED: ExitCode.LOCKED, JOURNAL: ExitCode.JOURNAL, MODEL: ExitCode.MODEL}


def outcome_of(task: TaskId, ending: SessionEnd, commit: str = "") -> TaskOutcome | None:
    """Return the outcome of a task that ended so, None if the end stops the whole run."""
    kind = OF_TASKS.get(ending.exit_code)
    reason = ending.reason.removeprefix(f"{task} ").removeprefix(f"{kind}: ")
    return TaskOutcome(task, kind, reason, commit) if kind is not None else None


def taken_outcome(task: TaskId, holder: str = "") -> TaskOutcome:
    """Return the outcome of a task that another process works on."""
    return TaskOutcome(task, TaskOutcomeKind.HELD, f"is held by {holder or 'another session'}")


def settled(outcomes: Iterable[TaskOutcome]) -> tuple[TaskOutcome, ...]:
    """Return the outcomes that the rest of the run cannot change."""
    return tuple(each for each in outcomes if each.outcome is not TaskOutcomeKind.WAITING)


def sum_up(outcomes: Iterable[TaskOutcome], plan: Plan) -> SessionEnd:
    """Return the end of a run over all tasks: failed wins over blocked and parked, these over done.

    A task that another process works on counts as done: that process reports its outcome.
    """
    each = (*outcomes, *_waiting(plan))
    kinds = {one.outcome for one in each}
    if TaskOutcomeKind.FAILED in kinds:
        code = ExitCode.FAILED
    else:
        code = ExitCode.PARKED if kinds & {TaskOutcomeKind.BLOCKED, TaskOutcomeKind.PARKED} else ExitCode.DONE
    if kinds <= {TaskOutcomeKind.WAITING, TaskOutcomeKind.HELD}:
        return SessionEnd(code, "; ".join(filter(None, ("no task is ready", _told(each)))), each)
    return SessionEnd(code, _told(each), each)


def _told(outcomes: tuple[TaskOutcome, ...]) -> str:
    if outcomes and (len(outcomes) == 1 or {one.outcome for one in outcomes} == {TaskOutcomeKind.DONE}):
        last = outcomes[-1]
        return f"{last.task} {last.outcome}: {last.reason}" if last.outcome in _NAMES_ALONE else _sentence(last, {})
    named = {kind: [one.task for one in outcomes if one.outcome is kind] for kind in _NAMES_ALONE}
    sentences = (_sentence(one, named) for kind in TaskOutcomeKind for one in outcomes if one.outcome is kind)
    return "; ".join(dict.fromkeys(sentences))


def _sentence(outcome: TaskOutcome, named: Mapping[TaskOutcomeKind, Sequence[TaskId]]) -> str:
    if outcome.outcome in named:
        return f"{outcome.outcome}: {', '.join(named[outcome.outcome])}"
    colon = ":" if outcome.outcome is TaskOutcomeKind.BLOCKED else ""
    return f"{outcome.task}{colon} {outcome.reason}"


def _waiting(plan: Plan) -> tuple[TaskOutcome, ...]:
    """Return the outcomes of open tasks that depend on others."""
    open_ = (each for each in plan.tasks if each.status is TaskStatus.PENDING and each.owner is Owner.AGENT)
    waiting = ((each.id, plan.waits_for(each)) for each in open_)
    return tuple(
        TaskOutcome(task, TaskOutcomeKind.WAITING, f"waits for {', '.join(waits)}") for task, waits in waiting if waits
    )


def trouble_event(move: Move, error: WorkbenchError) -> TroubleMet:
    """Return the event for `error`; the source of an error without a kind of its own is the move."""
    named = _MOVE_SOURCES.get(type(move), type(move).__name__.lower())
    source = next((source for kind, source in _SOURCES if isinstance(error, kind)), named)
    return TroubleMet(source, str(error), error.advice, isinstance(error, ModelError) and error.lasting)


def exit_code_of(trouble: TroubleMet) -> ExitCode:
    """Return the exit code of an unattended run that ends in this trouble."""
    return _EXIT_CODES.get(trouble.source, ExitCode.ENVIRONMENT)
