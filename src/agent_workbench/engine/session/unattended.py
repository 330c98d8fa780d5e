"""Unattended session: tasks under the policy, parked where a person is needed, and their outcomes."""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from agent_workbench.core.approval_rules import is_foreign
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import (
    ExitCode,
    JournalError,
    LockedError,
    ModelError,
    PlanError,
    StorageError,
    WorkbenchError,
    WorkspaceError,
)
from agent_workbench.core.events import PauseChanged, SessionLeft, TaskStatusChanged, TroubleMet
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import Intent, Leave, PauseTask
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.plan import Owner, Plan, TaskStatus
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.session_request import SessionEnd, TaskOutcome, TaskOutcomeKind
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.proposal_hooks import objections
from agent_workbench.engine.executor import perform
from agent_workbench.engine.flow import (
    Ask,
    AwaitGo,
    AwaitRetry,
    Decide,
    Execute,
    Idle,
    Move,
    Recover,
    ReviewChange,
    RunHook,
    next_move,
)
from agent_workbench.engine.note_offers import offer_put_aside
from agent_workbench.engine.policy import parking_reason, ruling
from agent_workbench.engine.proposals import decide
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.intent_queue import answered
from agent_workbench.engine.runtime.publisher import show_time
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.session.inbox import record_pending
from agent_workbench.engine.task.task_start import read_again, read_plan, start_task

UNATTENDED = "this session runs unattended; decide its proposals with `agent inbox`"

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


class UnattendedSession:
    """A session without a person. It takes no intent but to end: now, or before its next move."""

    def __init__(
        self,
        session: SessionContext,
        recorder: Recorder,
        tasks: tuple[TaskId, ...] | None,
        before: tuple[TaskOutcome, ...] = (),
        elsewhere: Collection[TaskId] = (),
    ) -> None:
        self._session = session
        self._work = partial(run_unattended, session, recorder, tasks, before, elsewhere)
        self._working: asyncio.Task[SessionEnd] | None = None
        self._left = False

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        """Stop the work at `Leave`, and at `PauseTask` when the move being made is over; refuse any other intent.

        A model's answer is not waited for: it has no effect yet, and is asked for again.
        """
        if not isinstance(intent, Leave | PauseTask):
            return answered(Refused(UNATTENDED))
        self._session.ending.set()
        if isinstance(intent, PauseTask) and not isinstance(next_move(self._session.state), Ask | ReviewChange):
            return answered(Accepted())
        self._left = True
        if self._working is not None:
            self._working.cancel()
        return answered(Accepted())

    async def run(self) -> SessionEnd:
        """Work until the tasks are over, a person is needed, or the session is left."""
        self._working = asyncio.create_task(self._work())
        if self._left:
            self._working.cancel()
        try:
            return await self._working
        except asyncio.CancelledError:
            if not self._left:
                raise
            return SessionEnd(ExitCode.INTERRUPTED, "stopped")
        finally:
            self._session.publisher.end("")


async def run_unattended(
    session: SessionContext,
    recorder: Recorder,
    tasks: tuple[TaskId, ...] | None,
    before: tuple[TaskOutcome, ...] = (),
    elsewhere: Collection[TaskId] = (),
) -> SessionEnd:
    """Work on these tasks (None: all that are ready) until they are over or a person is needed.

    A session holds one unfinished task. If it is parked, the caller opens another session for the other tasks. `before`
    are the outcomes of earlier sessions of the run. Tasks in `elsewhere` stopped in other sessions and are not started.
    """
    reason = "stopped"
    ports = session.ports
    showing = in_background(show_time(session.publisher, ports.clock, ports.backlog))
    try:
        ending = await _run(session, tasks, before, elsewhere)
        await session.hooks.finish()
        reason = "ended"
        return ending
    finally:
        showing.cancel()
        try:
            await session.stop_background()
            await session.record(SessionLeft(reason))
        finally:
            try:
                await session.close()
            finally:
                await recorder.close()


async def _run(
    session: SessionContext,
    tasks: tuple[TaskId, ...] | None,
    before: tuple[TaskOutcome, ...],
    elsewhere: Collection[TaskId],
) -> SessionEnd:
    await read_again(session)
    taken_up = await _work(session) if session.state.unfinished else None
    if tasks is None:
        return await _run_all(session, taken_up, before, elsewhere)
    if taken_up is not None and taken_up.exit_code not in (ExitCode.DONE, ExitCode.FAILED):
        return taken_up
    ending = taken_up
    for task in tasks:
        if ending is not None and ending.exit_code is not ExitCode.DONE:
            return ending
        run = session.state.run_of(task)
        if run is None or run.status is not TaskStatus.DONE:
            await start_task(session, task)
            worked = await _work(session)
            ending = replace(worked, outcomes=((ending.outcomes if ending else ()) + worked.outcomes))
    return ending or SessionEnd(ExitCode.DONE, "nothing was left to do")


async def _run_all(
    session: SessionContext, taken_up: SessionEnd | None, before: tuple[TaskOutcome, ...], elsewhere: Collection[TaskId]
) -> SessionEnd:
    """Do every task that is ready; a task that fails or is parked blocks only those that depend on it."""
    outcomes = {each.task: each for each in before}
    ending = taken_up
    while True:
        if ending is not None:
            if not ending.outcomes:
                return replace(ending, outcomes=tuple(outcomes.values()))
            outcomes |= {each.task: each for each in ending.outcomes}
        for held in await read_plan(session):
            outcomes.setdefault(held, taken_outcome(held))
        passing = {*outcomes, *elsewhere}
        task = session.state.plan.next_task(passing)
        if session.state.unfinished or task is None:
            return sum_up(outcomes.values(), session.state.plan)
        ending = await _start_and_work(session, task.id, passing)


async def _start_and_work(session: SessionContext, task: TaskId, passing: Collection[TaskId]) -> SessionEnd | None:
    """Do a task; return None if another process did or changed it since the plan was read."""
    try:
        await start_task(session, task)
    except LockedError as error:
        return SessionEnd(ExitCode.LOCKED, str(error), (taken_outcome(task, error.holder),))
    except (PlanError, WorkspaceError) as error:
        await read_plan(session)
        again = session.state.plan.next_task(passing)
        if isinstance(error, PlanError) and (again is None or again.id != task):
            return None
        await _block(session, task, str(error))
        return SessionEnd(ExitCode.PARKED, str(error), (TaskOutcome(task, TaskOutcomeKind.BLOCKED, str(error)),))
    return await _work(session)


async def _block(session: SessionContext, task: TaskId, reason: str) -> None:
    await session.ports.plans.set_status(task, TaskStatus.BLOCKED, reason)
    await session.record(TaskStatusChanged(task, TaskStatus.BLOCKED, reason))


def all_done(plan: Plan, tasks: tuple[TaskId, ...]) -> bool:
    """Return True if there are tasks and all are done; raise `PlanError` for one that is not in the plan."""
    found = [plan.task(task).status for task in tasks]
    return bool(found) and set(found) == {TaskStatus.DONE}


def already_done(tasks: tuple[TaskId, ...]) -> SessionEnd:
    """Return the end of a run whose tasks were done by a session that was killed before it could report."""
    verb = "is" if len(tasks) == 1 else "are"
    return SessionEnd(ExitCode.DONE, f"{', '.join(tasks)} {verb} done: the session that was killed had come to its end")


async def _work(session: SessionContext) -> SessionEnd:
    """Perform moves until the task is over; the end has no outcome if no other task can be done either."""
    ending = await _move(session)
    outcome = outcome_of(session.run.task, ending, session.run.commit or "")
    return replace(ending, outcomes=(outcome,)) if outcome is not None else ending


async def _move(session: SessionContext) -> SessionEnd:
    while True:
        # Notes that are offered wait in the inbox: they keep no task from its end.
        over = not session.state.unfinished and session.state.trouble is None
        move = Idle() if over else next_move(session.state)
        if session.ending.is_set() and not isinstance(move, Idle | AwaitRetry):
            return SessionEnd(ExitCode.INTERRUPTED, "stopped between two steps")
        match move:
            case Idle():
                run = session.run
                await offer_put_aside(session)
                done = run.status is TaskStatus.DONE
                return SessionEnd(ExitCode.DONE if done else ExitCode.FAILED, f"{run.task} {run.status}: {run.reason}")
            case AwaitRetry():
                advice = f" ({move.trouble.advice})" if move.trouble.advice else ""
                return SessionEnd(exit_code_of(move.trouble), move.trouble.what + advice)
            case AwaitGo():  # paused at a screen: an unattended run resumes it
                await session.record(PauseChanged(paused=False))
            case RunHook() if await _is_decided(session, move):
                continue
            case Decide():
                if await _is_decided(session, move):
                    continue
                verdict = ruling(session.state, move.proposal)
                if verdict is None:
                    session.hooks.tell_waiting(move.proposal, session.state)
                    return SessionEnd(ExitCode.PARKED, _parked(session, move.proposal))
                await decide(session, move.proposal, verdict.verdict, verdict.by, verdict.reason)
            case _:
                await _guarded(session, move)


async def _is_decided(session: SessionContext, move: Decide | RunHook) -> bool:
    """Record what the inbox holds; return True if the move is another one now: a person comes before any policy."""
    await record_pending(session)
    return next_move(session.state) != move


def _parked(session: SessionContext, proposal: Proposal) -> str:
    """Return which proposal waits and why no flag would approve it, or the flag that would."""
    of_foreign = is_foreign(session.run.definition) and proposal.runs_commands
    if of_foreign or objections(session.state, proposal):
        why = parking_reason(session.state, proposal)
        return f"{session.run.task} waits for a person: {proposal.kind} {proposal.id}; {why}"
    config = session.state.config
    opens = proposal.kind is Permission.COMMAND and config is not None and config.sandbox.holds
    hint = "; `agent run --yes --commands` approves commands" if opens else ""
    return f"{session.run.task} waits for a person: {proposal.kind} {proposal.id}{hint}"


async def _guarded(session: SessionContext, move: Move) -> None:
    try:
        await perform(session, move)
    except WorkbenchError as error:
        await session.record(trouble_event(move, error))


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
