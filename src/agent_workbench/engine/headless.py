"""A session without a person: tasks one after the other under the policy, parked where a person is needed."""

from collections.abc import Collection

from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode, LockedError, PlanError, WorkbenchError, WorkspaceError
from agent_workbench.core.events import PauseChanged, SessionLeft, TaskStatusChanged
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import GateKind
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.executor import perform
from agent_workbench.engine.flow import AwaitGo, AwaitRetry, Decide, Idle, Move, next_move
from agent_workbench.engine.gating import decide
from agent_workbench.engine.outcomes import Ending, Outcome, TaskOutcome, held_elsewhere, outcome_of, sum_up
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.rulings import ruling
from agent_workbench.engine.starting import read_again, read_plan, start_task
from agent_workbench.engine.trouble import exit_code_of, trouble_of


async def run_headless(
    desk: Desk,
    recorder: Recorder,
    tasks: tuple[TaskId, ...] | None,
    before: tuple[TaskOutcome, ...] = (),
    elsewhere: Collection[TaskId] = (),
) -> Ending:
    """Work on these tasks (all that are ready when None) until they are over, or somebody is needed.

    A session holds one unfinished task: where that is parked, the caller opens another session for the other tasks.
    `before` are the outcomes of the sessions that the run had before this one. The tasks `elsewhere` stopped in other
    sessions and are not started here.
    """
    reason = "stopped"
    try:
        ending = await _run(desk, tasks, before, elsewhere)
        reason = "ended"
        return ending
    finally:
        try:
            await desk.record(SessionLeft(reason))
        finally:
            try:
                await desk.close()
            finally:
                await recorder.close()


async def _run(
    desk: Desk, tasks: tuple[TaskId, ...] | None, before: tuple[TaskOutcome, ...], elsewhere: Collection[TaskId]
) -> Ending:
    await read_again(desk)
    taken_up = await _work(desk) if desk.state.unfinished else None
    if tasks is None:
        return await _run_all(desk, taken_up, before, elsewhere)
    if taken_up is not None and taken_up.exit_code not in (ExitCode.DONE, ExitCode.FAILED):
        return taken_up
    ending = taken_up
    for task in tasks:
        if ending is not None and ending.exit_code is not ExitCode.DONE:
            return ending
        run = desk.state.run_of(task)
        if run is None or run.status is not TaskStatus.DONE:
            await start_task(desk, task)
            worked = await _work(desk)
            ending = replace(worked, outcomes=((ending.outcomes if ending else ()) + worked.outcomes))
    return ending or Ending(ExitCode.DONE, "nothing was left to do")


async def _run_all(
    desk: Desk, taken_up: Ending | None, before: tuple[TaskOutcome, ...], elsewhere: Collection[TaskId]
) -> Ending:
    """Do every task that is ready; one that is not done keeps nothing back but what depends on it."""
    outcomes = {each.task: each for each in before}
    ending = taken_up
    while True:
        if ending is not None:
            if not ending.outcomes:
                return replace(ending, outcomes=tuple(outcomes.values()))
            outcomes |= {each.task: each for each in ending.outcomes}
        await read_plan(desk)
        for held in desk.board.live.taken:
            outcomes.setdefault(held, held_elsewhere(held))
        passing = {*outcomes, *elsewhere}
        task = desk.state.plan.next_task(passing)
        if desk.state.unfinished or task is None:
            return sum_up(outcomes.values(), desk.state.plan)
        ending = await _start_and_work(desk, task.id, passing)


async def _start_and_work(desk: Desk, task: TaskId, passing: Collection[TaskId]) -> Ending | None:
    """Do a task; return None where it was done or changed by another process since the plan was read."""
    try:
        await start_task(desk, task)
    except LockedError as error:
        return Ending(ExitCode.LOCKED, str(error), (held_elsewhere(task, error.holder),))
    except (PlanError, WorkspaceError) as error:
        await read_plan(desk)
        again = desk.state.plan.next_task(passing)
        if isinstance(error, PlanError) and (again is None or again.id != task):
            return None
        await _block(desk, task, str(error))
        return Ending(ExitCode.PARKED, str(error), (TaskOutcome(task, Outcome.BLOCKED, str(error)),))
    return await _work(desk)


async def _block(desk: Desk, task: TaskId, reason: str) -> None:
    await desk.ports.plans.set_status(task, TaskStatus.BLOCKED, reason)
    await desk.record(TaskStatusChanged(task, TaskStatus.BLOCKED, reason))


def all_done(plan: Plan, tasks: tuple[TaskId, ...]) -> bool:
    """Return whether these tasks, at least one, are all done; raise `PlanError` for one that is not in the plan."""
    found = [plan.task(task).status for task in tasks]
    return bool(found) and set(found) == {TaskStatus.DONE}


def already_done(tasks: tuple[TaskId, ...]) -> Ending:
    """Return the ending of a run for tasks that a session did which was killed before it could say so."""
    verb = "is" if len(tasks) == 1 else "are"
    return Ending(ExitCode.DONE, f"{', '.join(tasks)} {verb} done: the session that was killed had come to its end")


async def _work(desk: Desk) -> Ending:
    """Move until the task is over; the ending has no outcome where the other tasks cannot be done either."""
    ending = await _move(desk)
    outcome = outcome_of(desk.run.task, ending)
    return replace(ending, outcomes=(outcome,)) if outcome is not None else ending


async def _move(desk: Desk) -> Ending:
    while True:
        move = next_move(desk.state)
        match move:
            case Idle():
                run = desk.run
                done = run.status is TaskStatus.DONE
                return Ending(ExitCode.DONE if done else ExitCode.FAILED, f"{run.task} {run.status}: {run.reason}")
            case AwaitRetry():
                advice = f" ({move.trouble.advice})" if move.trouble.advice else ""
                return Ending(exit_code_of(move.trouble), move.trouble.what + advice)
            case AwaitGo():  # it was paused at the screen; whoever runs it without one wants it to go on
                await desk.record(PauseChanged(paused=False))
            case Decide():
                verdict = ruling(desk.state, move.proposal)
                if verdict is None:
                    return Ending(ExitCode.PARKED, _parked(desk, move.proposal))
                await decide(desk, move.proposal, verdict.verdict, verdict.by, verdict.reason)
            case _:
                await _guarded(desk, move)


def _parked(desk: Desk, proposal: Proposal) -> str:
    """Return who waits for what, and how a run goes on by itself where that can be said."""
    config = desk.state.config
    opens = proposal.kind is GateKind.COMMAND and config is not None and config.sandbox.holds
    hint = "; `agent run --yes --commands` approves commands" if opens else ""
    return f"{desk.run.task} waits for a person: {proposal.kind} {proposal.id}{hint}"


async def _guarded(desk: Desk, move: Move) -> None:
    try:
        await perform(desk, move)
    except WorkbenchError as error:
        await desk.record(trouble_of(move, error))
