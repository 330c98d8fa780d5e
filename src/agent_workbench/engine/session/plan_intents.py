"""Intents about the plan: open, edit, reorder and block tasks, also while the model answers."""

from agent_workbench.core.events import Author, PlanRead, TaskStatusChanged
from agent_workbench.core.intents.outcomes import Accepted, Outcome, PlanOpened, Refused, TaskAdded
from agent_workbench.core.intents.plan import AddTask, BlockTask, EditPlan, MoveTask, OpenPlan, PlanChange
from agent_workbench.core.plan import TaskStatus
from agent_workbench.engine.runtime.session_context import SessionContext

BLOCKABLE = frozenset({TaskStatus.PENDING, TaskStatus.FAILED, TaskStatus.IN_PROGRESS})


async def handle_plan(session: SessionContext, intent: PlanChange) -> Outcome:
    """Carry an intent out in the plan's file and record the plan as it is then; raise `PlanError`, `StorageError`.

    An edited text that is not a plan is refused with its fault, so that the front end keeps the text.
    """
    match intent:
        case OpenPlan():
            return PlanOpened(await session.ports.plans.piece(intent.task, new=intent.new, draft=intent.draft))
        case AddTask():
            added = await session.ports.plans.add_new(intent.task)
            await _read(session)
            session.publisher.show_plan_problem("")
            return TaskAdded(added)
        case EditPlan():
            return await _edit(session, intent)
        case MoveTask():
            await session.ports.plans.move(intent.task, up=intent.up)
            await _read(session)
            return Accepted()
        case BlockTask():
            return await _block(session, intent)


async def _edit(session: SessionContext, intent: EditPlan) -> Outcome:
    run, piece = session.state.run, intent.piece
    keep = (run.task,) if run is not None and session.state.unfinished else ()
    await session.ports.plans.replace_text(piece.whole, piece.whole_with(intent.text), keep)
    await _read(session)
    session.publisher.show_plan_problem("")
    return Accepted()


async def _read(session: SessionContext) -> None:
    plan = await session.ports.plans.read()
    if plan != session.state.plan or session.state.plan_path != session.ports.plans.path:
        await session.record(PlanRead(session.ports.plans.path, plan, Author.USER))


async def _block(session: SessionContext, intent: BlockTask) -> Outcome:
    """Block a task that is not being worked on, or unblock one."""
    run = session.state.run
    status = (await session.ports.plans.read()).task(intent.task).status
    if run is not None and run.task == intent.task and session.state.unfinished:
        return Refused(f"{intent.task} is being worked on; pause it or give it up instead")
    if status not in BLOCKABLE | {TaskStatus.BLOCKED}:
        return Refused(f"{intent.task} is {status}, there is nothing to block")
    if not intent.blocked and status is not TaskStatus.BLOCKED:
        return Refused(f"{intent.task} is not blocked")
    wanted = TaskStatus.BLOCKED if intent.blocked else TaskStatus.PENDING
    await session.ports.plans.set_status(intent.task, wanted, intent.reason)
    await session.record(TaskStatusChanged(intent.task, wanted, intent.reason))
    await _read(session)
    return Accepted()
