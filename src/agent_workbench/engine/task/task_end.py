"""End of a task: rolled back with its attempts kept, or closed with its status in plan and journal."""

from agent_workbench.core.events import TaskFinished, TaskRolledBack, TaskStatusChanged
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.engine.prompt.scratchpad import write_closing_note
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.task.execution import take_checkpoint
from agent_workbench.engine.tools.builtin.finish import finish_summary


async def roll_back(session: SessionContext, reason: str) -> None:
    """Keep the attempts under `refs/agent/`, reset the workspace to its base, and delete the task's branch."""
    session.publisher.show_activity("rolling back")
    await session.background.stop()
    workspace = await session.workspace()
    base = session.run.workspace.base
    if await workspace.unapproved_changes(session.run.workspace.tree):
        await take_checkpoint(session)
    await workspace.restore(base)
    # A crash may have come between the commit and its event; such a commit is no outcome of the task.
    await workspace.withdraw()
    await session.record(TaskRolledBack(session.run.task, base, reason))
    session.publisher.show_activity("")


async def close(session: SessionContext) -> None:
    """Write the task's closing note, and its status to the plan and to the journal."""
    run = session.run
    status = run.status or TaskStatus.DONE
    await session.background.stop()
    if status is TaskStatus.DONE and run.commit is None:
        # A branch without commits would only occupy the name.
        await (await session.workspace()).withdraw()
    unchanged = finish_summary(run) if run.definition.changes_nothing else ""
    reason = run.reason or unchanged or f"nothing was changed, and {run.checks_text}"
    await write_closing_note(session)
    if status is not TaskStatus.FAILED or not await _done_elsewhere(session, run.task):
        await session.ports.plans.set_status(run.task, status)
        await session.record(TaskStatusChanged(run.task, status, reason))
    await session.record(TaskFinished(run.task, status, reason))


async def _done_elsewhere(session: SessionContext, task: TaskId) -> bool:
    """Return True if the plan says that the task is done: by a fork, the parent session, or the user."""
    return any(each.id == task and each.status is TaskStatus.DONE for each in (await session.ports.plans.read()).tasks)
