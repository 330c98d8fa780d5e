"""What the workbench asks and shows about the plan while it is worked on."""

from typing import TYPE_CHECKING

from agent_workbench.core.intents import MergeTask, StartTask
from agent_workbench.core.intents.plan import BlockTask, MoveTask, OpenPlan
from agent_workbench.tui.panes.plan import PlanAction
from agent_workbench.views.plan import TaskRow

if TYPE_CHECKING:
    from agent_workbench.tui.session.session_tab import SessionTab


async def change_plan(tab: "SessionTab", action: PlanAction, row: TaskRow | None) -> None:
    """Do what the user wants of the plan at a task, or ask what it needs for that."""
    update = tab.update_shown
    if action is PlanAction.START and row is not None:
        if update is None or update.state.unfinished:
            tab.tell("a task is being worked on; finish or abort it first", "warning")
        else:
            await tab.want(StartTask(row.id))
        return
    if action is PlanAction.MERGE and row is not None:
        await tab.want(MergeTask(row.id))
        return
    if update is None or update.live.replay is not None:
        tab.tell("a recording is looked at, nothing of it can be changed", "warning")
        return
    task = row.id if row is not None else None
    match action:
        case PlanAction.MOVE_UP | PlanAction.MOVE_DOWN if task is not None:
            await tab.want(MoveTask(task, up=action is PlanAction.MOVE_UP))
        case PlanAction.BLOCK if row is not None and row.blocked:
            await tab.want(BlockTask(row.id, blocked=False))
        case PlanAction.BLOCK if row is not None:
            _ask_why(tab, row)
        case PlanAction.EDIT_ALL:
            await _open(tab, "The plan", OpenPlan())
        case PlanAction.NEW:
            await _open(tab, "A new task", OpenPlan(task, new=True))
        case PlanAction.EDIT | PlanAction.SHOW if task is not None:
            await _open(tab, f"Task {task}", OpenPlan(task), editable=action is PlanAction.EDIT)


async def _open(tab: "SessionTab", title: str, wanted: OpenPlan, *, editable: bool = True) -> None:
    from agent_workbench.tui.dialogs.plan_text import PlanTextScreen

    update = tab.update_shown
    # A key that was typed ahead opens no second one: both would take the text that comes first for theirs.
    if update is not None and not isinstance(tab.screen, PlanTextScreen):
        tab.push_screen(PlanTextScreen(title, wanted, tab.ask, editable=editable))


def _ask_why(tab: "SessionTab", row: TaskRow) -> None:
    from agent_workbench.tui.dialogs.reason import ReasonScreen

    async def block(reason: str | None) -> None:
        if reason is not None:
            await tab.want(BlockTask(row.id, reason.strip()))

    keys = "Enter blocks it   Esc leaves it as it is"
    tab.push_screen(ReasonScreen(f"Block {row.id}", keys, "why, in a line; it stands in the plan"), block)
