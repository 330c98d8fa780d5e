"""Recovery of interrupted actions, of which only recorded facts are reported; and the end of a task."""

from asyncio import to_thread

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.command_lines import left_running
from agent_workbench.core.events import (
    ActionFinished,
    ActionResult,
    Author,
    ContextCompacted,
    Event,
    PatchApplied,
    ScratchpadChanged,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
    TaskStatusChanged,
    TestsFinished,
)
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import COMPACT, Proposal
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import Phase, TaskRun
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.engine.prompt.prompt_text import WHILE_RUNNING, user_change_note
from agent_workbench.engine.prompt.repeated_lines import change_shown
from agent_workbench.engine.prompt.scratchpad import write_closing_note
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.summary_request import COMPACT_TOOL
from agent_workbench.engine.task.execution import take_checkpoint
from agent_workbench.engine.tools.check_runs import describe_checks
from agent_workbench.engine.tools.finish_tool import finish_summary
from agent_workbench.engine.tools.write_diff import describe_applied


async def recover(session: SessionContext, proposal: Proposal) -> None:
    """Finish an interrupted proposal by its recorded effects, else as unknown; reset the files to what was approved."""
    if proposal.kind is Permission.COMMAND and left_running(proposal.text):
        await session.background.stop()
    workspace = await session.workspace()
    tree = session.run.tree
    unapproved = await workspace.unapproved_changes(tree)
    if unapproved:
        # They may be the user's, and no diff holds them.
        await take_checkpoint(session)
    await workspace.reset(tree)
    if unapproved:
        # A lost worktree is rebuilt from the last checkpoint.
        await take_checkpoint(session)
    if proposal.tool == COMPACT:
        await _settle_compaction(session, proposal)
        return
    effects = _effects_on_record(session)
    known = [told for effect in effects if (told := await to_thread(_told_of, effect, proposal, session.run))]
    if not known:
        stopped = f"{_who_stopped(session.run)}{WHILE_RUNNING}"
        await session.record(ActionFinished(proposal.id, ActionResult.UNKNOWN, stopped))
        return
    if any(isinstance(effect, PatchApplied) for effect in effects):
        await take_checkpoint(session)
    await session.record(ActionFinished(proposal.id, ActionResult.OK, user_change_note(proposal) + "\n".join(known)))


def _who_stopped(run: TaskRun) -> str:
    if run.undoing is not None:
        return "the user took a diff back"
    return "the user gave the task up" if run.phase is Phase.ROLLING_BACK else "the workbench was stopped"


async def _settle_compaction(session: SessionContext, proposal: Proposal) -> None:
    """Compact the context unless that is recorded. It has no effect but its event, so doing it twice is harmless."""
    result = ActionResult.OK
    if not any(isinstance(effect, ContextCompacted) for effect in _effects_on_record(session)):
        outcome = await COMPACT_TOOL.run(await session.tool_context(), proposal)
        for effect in outcome.effects:
            await session.record(effect)
        result = outcome.result
    await session.record(ActionFinished(proposal.id, result, ""))


def _effects_on_record(session: SessionContext) -> tuple[Event, ...]:
    """Return the events recorded since the running proposal was started."""
    history = session.run.history
    started = next((step.started.seq for step in newest_steps(history) if step.started is not None), None)
    return tuple(each.event for each in history if started is not None and each.seq > started)


def _told_of(effect: Event, proposal: Proposal, run: TaskRun) -> str:
    match effect:
        case PatchApplied():
            return describe_applied(effect, proposal)
        case TestsFinished():
            baseline = None if effect.purpose is CheckPurpose.BASELINE else run.baseline
            return describe_checks(effect, baseline, change_shown(run.history), run.workspace.path)
        case TaskCommitted():
            return f"committed {effect.commit[:10]} on {effect.branch}"
        case TaskMerged():
            return f"{effect.outcome.into} is at {effect.outcome.commit[:10]} ({effect.outcome.how})"
        case ScratchpadChanged(by=Author.MODEL):
            return "noted"
        case _:
            return ""


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
