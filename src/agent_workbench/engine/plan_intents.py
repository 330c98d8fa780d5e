"""What the user wants of the plan: shown, edited, reordered, blocked; at any time, also while the model answers."""

from msgspec.structs import replace

from agent_workbench.core.errors import PlanError
from agent_workbench.core.events import Author, PlanRead, TaskStatusChanged
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.plan_intents import BlockTask, EditPlan, MoveTask, OpenPlan, PlanIntent
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.gating import spoken

BLOCKABLE = frozenset({TaskStatus.PENDING, TaskStatus.FAILED, TaskStatus.IN_PROGRESS})


async def handle_plan(desk: Desk, intent: PlanIntent) -> None:
    """Do it through the plan's file and record what the plan is then; raise `PlanError`, `StorageError`.

    What is wrong with an edited text is published with it, so that nothing written is lost.
    """
    match intent:
        case OpenPlan():
            await _open(desk, intent)
        case EditPlan():
            await _edit(desk, intent)
        case MoveTask():
            await desk.ports.plans.move(intent.task, up=intent.up)
            await _read(desk)
        case BlockTask():
            await _block(desk, intent)


async def _open(desk: Desk, intent: OpenPlan) -> None:
    try:
        desk.board.show_plan(await desk.ports.plans.piece(intent.task, new=intent.new))
    except PlanError as error:
        desk.board.show_plan(None, spoken(error))


async def _edit(desk: Desk, intent: EditPlan) -> None:
    run, piece = desk.state.run, intent.piece
    keep = (run.task,) if run is not None and desk.state.unfinished else ()
    try:
        await desk.ports.plans.replace_text(piece.whole, piece.whole_with(intent.text), keep)
        await _read(desk)
    except PlanError as error:
        desk.board.show_plan(piece, spoken(error))
        return
    if desk.board.live.no_plan:
        desk.board.show_live(replace(desk.board.live, no_plan=""))
    desk.board.show_plan(piece)


async def _read(desk: Desk) -> None:
    plan = await desk.ports.plans.read()
    if plan != desk.state.plan or desk.state.plan_path != desk.ports.plans.path:
        await desk.record(PlanRead(desk.ports.plans.path, plan, Author.USER))


async def _block(desk: Desk, intent: BlockTask) -> None:
    """Block a task that is not being worked on, or let one that is blocked be started again."""
    run = desk.state.run
    status = (await desk.ports.plans.read()).task(intent.task).status
    if run is not None and run.task == intent.task and desk.state.unfinished:
        desk.board.notify(f"{intent.task} is being worked on; pause it or give it up instead")
    elif status not in BLOCKABLE | {TaskStatus.BLOCKED}:
        desk.board.notify(f"{intent.task} is {status}, there is nothing to block")
    elif intent.blocked or status is TaskStatus.BLOCKED:
        wanted = TaskStatus.BLOCKED if intent.blocked else TaskStatus.PENDING
        await desk.ports.plans.set_status(intent.task, wanted, intent.reason)
        await desk.record(TaskStatusChanged(intent.task, wanted, intent.reason))
        await _read(desk)
