"""Ending a task: rolled back with its attempts kept, or closed with its status written."""

from agent_workbench.core.events import TaskFinished, TaskRolledBack, TaskStatusChanged
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.engine.carrying import take_checkpoint
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.notes import write_closing_note


async def roll_back(desk: Desk, reason: str) -> None:
    """Keep what was tried under `refs/agent/`, then make the workspace its base again and delete the task's branch."""
    desk.board.show_activity("rolling back")
    workspace = await desk.workspace()
    base = desk.run.workspace.base
    if await workspace.strays(desk.run.workspace.tree):
        await take_checkpoint(desk)
    await workspace.restore(base)
    # A commit was made if the stop came before it was recorded; nobody is to take it for the task's outcome.
    await workspace.withdraw()
    await desk.record(TaskRolledBack(desk.run.task, base, reason))
    desk.board.show_activity("")


async def close(desk: Desk) -> None:
    """Write the task's closing note, and its status to the plan and to the journal."""
    run = desk.run
    status = run.status or TaskStatus.DONE
    if status is TaskStatus.DONE and run.commit is None:
        # A branch without a commit of its own would only take the name.
        await (await desk.workspace()).withdraw()
    reason = run.reason or f"nothing was changed, and {run.checks_told}"
    await write_closing_note(desk)
    if status is not TaskStatus.FAILED or not await _done_elsewhere(desk, run.task):
        await desk.ports.plans.set_status(run.task, status)
        await desk.record(TaskStatusChanged(run.task, status, reason))
    await desk.record(TaskFinished(run.task, status, reason))


async def _done_elsewhere(desk: Desk, task: TaskId) -> bool:
    """Return whether the plan has the task done meanwhile, by a fork, the session it came from, or the user."""
    return any(each.id == task and each.status is TaskStatus.DONE for each in (await desk.ports.plans.read()).tasks)
