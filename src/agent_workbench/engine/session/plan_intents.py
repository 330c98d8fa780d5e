"""What the user wants of the plan: shown, edited, reordered, blocked; at any time, also while the model answers."""

from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.events import Author, PlanRead, TaskStatusChanged
from agent_workbench.core.intents.plan import BlockTask, EditPlan, MoveTask, OpenPlan, PlanIntent
from agent_workbench.core.plan import TaskStatus
from agent_workbench.engine.approval.proposals import spoken
from agent_workbench.engine.runtime.session_context import SessionContext

BLOCKABLE = frozenset({TaskStatus.PENDING, TaskStatus.FAILED, TaskStatus.IN_PROGRESS})


async def handle_plan(session: SessionContext, intent: PlanIntent) -> None:
    """Do it through the plan's file and record what the plan is then; raise `PlanError`, `StorageError`.

    What is wrong with an edited text is published with it, so that nothing written is lost.
    """
    match intent:
        case OpenPlan():
            await _open(session, intent)
        case EditPlan():
            await _edit(session, intent)
        case MoveTask():
            await session.ports.plans.move(intent.task, up=intent.up)
            await _read(session)
        case BlockTask():
            await _block(session, intent)


async def _open(session: SessionContext, intent: OpenPlan) -> None:
    try:
        session.publisher.show_plan(await session.ports.plans.piece(intent.task, new=intent.new))
    except PlanError as error:
        session.publisher.show_plan(None, spoken(error))


async def _edit(session: SessionContext, intent: EditPlan) -> None:
    run, piece = session.state.run, intent.piece
    keep = (run.task,) if run is not None and session.state.unfinished else ()
    try:
        await session.ports.plans.replace_text(piece.whole, piece.whole_with(intent.text), keep)
        await _read(session)
    except PlanError as error:
        session.publisher.show_plan(piece, spoken(error))
        return
    if session.publisher.live.no_plan:
        session.publisher.show_live(replace(session.publisher.live, no_plan=""))
    session.publisher.show_plan(piece)


async def _read(session: SessionContext) -> None:
    plan = await session.ports.plans.read()
    if plan != session.state.plan or session.state.plan_path != session.ports.plans.path:
        await session.record(PlanRead(session.ports.plans.path, plan, Author.USER))


async def _block(session: SessionContext, intent: BlockTask) -> None:
    """Block a task that is not being worked on, or let one that is blocked be started again."""
    run = session.state.run
    status = (await session.ports.plans.read()).task(intent.task).status
    if run is not None and run.task == intent.task and session.state.unfinished:
        session.publisher.notify(f"{intent.task} is being worked on; pause it or give it up instead")
    elif status not in BLOCKABLE | {TaskStatus.BLOCKED}:
        session.publisher.notify(f"{intent.task} is {status}, there is nothing to block")
    elif intent.blocked or status is TaskStatus.BLOCKED:
        wanted = TaskStatus.BLOCKED if intent.blocked else TaskStatus.PENDING
        await session.ports.plans.set_status(intent.task, wanted, intent.reason)
        await session.record(TaskStatusChanged(intent.task, wanted, intent.reason))
        await _read(session)
