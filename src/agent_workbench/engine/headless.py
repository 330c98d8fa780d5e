"""A session without a person: tasks one after the other under the policy, parked where a person is needed."""

from dataclasses import dataclass

from agent_workbench.core.errors import ExitCode, WorkbenchError, WorkspaceError
from agent_workbench.core.events import PauseChanged, SessionLeft, TaskStatusChanged
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, TaskStatus
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.executor import perform
from agent_workbench.engine.flow import AwaitGo, AwaitRetry, Decide, Idle, Move, next_move
from agent_workbench.engine.gating import decide
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.rulings import ruling
from agent_workbench.engine.starting import read_again, start_task
from agent_workbench.engine.trouble import exit_code_of, trouble_of


@dataclass(frozen=True, slots=True)
class Ending:
    """How a headless run ended: its exit code and one line of why."""

    exit_code: ExitCode
    reason: str


async def run_headless(desk: Desk, recorder: Recorder, tasks: tuple[TaskId, ...] | None) -> Ending:
    """Work on these tasks (all that are ready when None) until they are over, or somebody is needed."""
    reason = "stopped"
    try:
        ending = await _run(desk, tasks)
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


async def _run(desk: Desk, tasks: tuple[TaskId, ...] | None) -> Ending:
    await read_again(desk)
    taken_up = await _work(desk) if desk.state.unfinished else None
    if taken_up is not None and taken_up.exit_code not in (ExitCode.DONE, ExitCode.FAILED):
        return taken_up
    if tasks is None:
        return await _run_all(desk, taken_up)
    ending = taken_up
    for task in tasks:
        if ending is not None and ending.exit_code is not ExitCode.DONE:
            return ending
        run = desk.state.run_of(task)
        if run is None or run.status is not TaskStatus.DONE:
            await start_task(desk, task)
            ending = await _work(desk)
    return ending or Ending(ExitCode.DONE, "nothing was left to do")


async def _run_all(desk: Desk, ending: Ending | None) -> Ending:
    """Do every task that is ready; one that fails or cannot begin keeps nothing back but what depends on it."""
    failed = [desk.run.task] if ending is not None and ending.exit_code is ExitCode.FAILED else []
    blocked: list[str] = []
    while task := desk.state.plan.next_task():
        try:
            await start_task(desk, task.id)
        except WorkspaceError as error:
            await _block(desk, task.id, str(error))
            blocked.append(f"{task.id}: {error}")
            continue
        ending = await _work(desk)
        if ending.exit_code is ExitCode.FAILED:
            failed.append(task.id)
        elif ending.exit_code is not ExitCode.DONE:
            return ending
    if failed:
        return Ending(ExitCode.FAILED, f"failed: {', '.join(failed)}")
    if blocked:
        return Ending(ExitCode.PARKED, f"blocked: {'; '.join(blocked)}")
    return ending or nothing_to_do(desk.state.plan)


async def _block(desk: Desk, task: TaskId, reason: str) -> None:
    await desk.ports.plans.set_status(task, TaskStatus.BLOCKED, reason)
    await desk.record(TaskStatusChanged(task, TaskStatus.BLOCKED, reason))


def nothing_to_do(plan: Plan) -> Ending:
    """Return the ending of a run for which no task of the plan is ready."""
    waiting = [f"{task.id} waits for {', '.join(waits)}" for task in plan.tasks if (waits := plan.waits_for(task))]
    return Ending(ExitCode.DONE, "; ".join(["no task is ready", *waiting]))


def all_done(plan: Plan, tasks: tuple[TaskId, ...]) -> bool:
    """Return whether these tasks, at least one, are all done; raise `PlanError` for one that is not in the plan."""
    found = [plan.task(task).status for task in tasks]
    return bool(found) and set(found) == {TaskStatus.DONE}


def already_done(tasks: tuple[TaskId, ...]) -> Ending:
    """Return the ending of a run for tasks that a session did which was killed before it could say so."""
    verb = "is" if len(tasks) == 1 else "are"
    return Ending(ExitCode.DONE, f"{', '.join(tasks)} {verb} done: the session that was killed had come to its end")


async def _work(desk: Desk) -> Ending:
    """Move until the task is over."""
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
                    kind = move.proposal.kind
                    return Ending(ExitCode.PARKED, f"{desk.run.task} waits for a person: {kind} {move.proposal.id}")
                await decide(desk, move.proposal, verdict.verdict, verdict.by, verdict.reason)
            case _:
                await _guarded(desk, move)


async def _guarded(desk: Desk, move: Move) -> None:
    try:
        await perform(desk, move)
    except WorkbenchError as error:
        await desk.record(trouble_of(move, error))
