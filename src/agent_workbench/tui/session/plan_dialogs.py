"""Dialogs about the plan: start, merge, move, block and edit tasks."""

from agent_workbench.core.intents import MergeTask, StartTask
from agent_workbench.core.intents.plan import BlockTask, MoveTask, OpenPlan
from agent_workbench.tui.panes.plan import PlanAction
from agent_workbench.tui.session.window import REPLAYED, SessionWindow
from agent_workbench.views.plan import TaskRow


class PlanDialogs:
    """Actions on the plan of a session, with the dialogs that they need."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    async def run(self, action: PlanAction, row: TaskRow | None) -> None:
        """Run an action at a task of the plan (None: there is none)."""
        update = self._window.update_shown
        if row is not None and action is PlanAction.START:
            if update is None or update.state.unfinished:
                self._window.tell("a task is being worked on; finish or abort it first", "warning")
            else:
                await self._window.want(StartTask(row.id))
        elif row is not None and action is PlanAction.MERGE:
            await self._window.want(MergeTask(row.id))
        elif update is None or update.live.replay is not None:
            self._window.tell(REPLAYED, "warning")
        else:
            await self._change(action, row)

    async def _change(self, action: PlanAction, row: TaskRow | None) -> None:
        task = row.id if row is not None else None
        match action:
            case PlanAction.MOVE_UP | PlanAction.MOVE_DOWN if task is not None:
                await self._window.want(MoveTask(task, up=action is PlanAction.MOVE_UP))
            case PlanAction.BLOCK if row is not None and row.blocked:
                await self._window.want(BlockTask(row.id, blocked=False))
            case PlanAction.BLOCK if row is not None:
                self._ask_reason(row)
            case PlanAction.EDIT_ALL:
                self._open("The plan", OpenPlan())
            case PlanAction.NEW:
                self._open("A new task", OpenPlan(task, new=True))
            case PlanAction.EDIT | PlanAction.SHOW if task is not None:
                self._open(f"Task {task}", OpenPlan(task), editable=action is PlanAction.EDIT)

    def _open(self, title: str, wanted: OpenPlan, *, editable: bool = True) -> None:
        from agent_workbench.tui.dialogs.plan_text import PlanTextDialog

        # A key that was queued opens no second dialog.
        if not isinstance(self._window.screen, PlanTextDialog):
            self._window.push_screen(PlanTextDialog(title, wanted, self._window.ask, editable=editable))

    def _ask_reason(self, row: TaskRow) -> None:
        from agent_workbench.tui.dialogs.reason import ReasonDialog

        async def block(reason: str | None) -> None:
            if reason is not None:
                await self._window.want(BlockTask(row.id, reason.strip()))

        keys = "Enter blocks it   Esc leaves it as it is"
        self._window.push_screen(ReasonDialog(f"Block {row.id}", keys, "why, in a line; it stands in the plan"), block)
