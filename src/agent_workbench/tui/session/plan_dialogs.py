"""Dialogs about the plan: start, merge, move, block and edit tasks, and pull requests of them."""

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import ArrangePlan, BlockTask, MergeTask, MoveTask, OpenPlan, ProposePlan, StartTask
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.tui.panes.plan import PlanAction
from agent_workbench.tui.session.record_dialogs import with_advice
from agent_workbench.tui.session.window import SessionWindow, is_read_only
from agent_workbench.views.gate.notes import pull_request_lines
from agent_workbench.views.plan import TaskRow
from agent_workbench.views.sessions import read_only_reason

NO_FORGE = "a pull request cannot be opened here; `agent merge {} --pull-request` does it"
OF_THE_PLAN = frozenset({PlanAction.NEW, PlanAction.EDIT_ALL, PlanAction.ASK})
"""Actions that do not depend on the selected task."""


class PlanDialogs:
    """Actions on the plan of a session, with the dialogs that they need."""

    def __init__(self, window: SessionWindow) -> None:
        self._window = window

    async def run(self, action: PlanAction, row: TaskRow | None) -> None:
        """Run an action at a task of the plan (None: there is none)."""
        update = self._window.update_shown
        if row is not None and row.proposed and action not in OF_THE_PLAN:
            await self._arrange(action, row)
        elif row is not None and action is PlanAction.START:
            if update is None or update.state.unfinished:
                self._window.tell("a task is being worked on; finish or abort it first", "warning")
            else:
                await self._window.want(StartTask(row.id))
        elif row is not None and action is PlanAction.MERGE:
            await self._window.want(MergeTask(row.id))
        elif row is not None and action is PlanAction.PULL_REQUEST:
            self._window.run_worker(self._ask_pull_request(row.id), group="pull request", exclusive=True)
        elif update is not None and read_only_reason(update.live) and action is PlanAction.NEW:
            self._window.tell("that session takes no task here; this new session does")
            await self._window.open_session(SessionRequest(OpenMode.NEW))
        elif update is not None and not is_read_only(self._window):
            await self._change(action, row)

    async def _ask_pull_request(self, task: TaskId) -> None:
        from agent_workbench.tui.screens.dialog import ConfirmDialog

        window = self._window
        if window.pull_requests is None:
            window.tell(NO_FORGE.format(task), "warning")
            return
        requests = window.pull_requests()

        async def opened() -> None:
            try:
                window.tell(f"the pull request is {await requests.open(shown)}")
            except WorkbenchError as error:
                window.tell(with_advice(error), "error")

        def answer(yes: bool | None) -> None:
            if yes:
                window.tell(f"pushing {shown.branch} …")
                window.run_worker(opened(), group="opening")

        try:
            shown = await requests.preview(task)
        except WorkbenchError as error:
            window.tell(with_advice(error), "warning")
            return
        lines = pull_request_lines(shown)
        title, yes = f"Open a pull request of {task}?", "push and open it"
        window.push_screen(ConfirmDialog(title, lines, window.clock, yes=yes, by_letter=True), answer)

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
            case PlanAction.ASK:
                self._ask_goal()
            case PlanAction.NEW:
                self._open("A new task", OpenPlan(task, new=True))
            case PlanAction.EDIT | PlanAction.SHOW if task is not None:
                self._open(f"Task {task}", OpenPlan(task), editable=action is PlanAction.EDIT)

    async def _arrange(self, action: PlanAction, row: TaskRow) -> None:
        """Change the proposed plan that waits."""
        if is_read_only(self._window):
            return
        update = self._window.update_shown
        waiting = update.state.waiting if update is not None else None
        if waiting is None or waiting.plan is None:
            return
        plan, order = waiting.plan, [each.task.id for each in waiting.plan.tasks]
        left = {each.task.id for each in plan.tasks if not each.taken}
        replaces, at = plan.replaces, order.index(row.id)
        match action:
            case PlanAction.TAKE:
                left ^= {row.id}
            case PlanAction.REPLACE:
                replaces = not replaces
            case PlanAction.MOVE_UP | PlanAction.MOVE_DOWN:
                to = at - 1 if action is PlanAction.MOVE_UP else at + 1
                if not 0 <= to < len(order):
                    return
                order[at], order[to] = order[to], order[at]
            case PlanAction.EDIT | PlanAction.SHOW:
                wanted = OpenPlan(row.id, proposal=waiting.id)
                self._open(f"Proposed task {row.id}", wanted, editable=action is PlanAction.EDIT)
                return
            case _:
                self._window.tell(f"{row.id} is only proposed; approve the plan at the gate first", "warning")
                return
        await self._window.want(ArrangePlan(waiting.id, tuple(order), tuple(left), replaces))

    def show_progress(self) -> None:
        """Show the plan's tasks in the queue."""
        from agent_workbench.subjects.dispatch.screen import PlanProgressScreen, PlanRest

        window = self._window
        if window.screen is not window.workbench or window.plan_work is None:
            return  # a key that was queued opens no second screen
        work = window.plan_work()

        async def go(answer: SessionRequest | PlanRest | None) -> None:
            await work.close()
            update = window.update_shown
            if update is not None and not read_only_reason(update.live):
                window.run_worker(self._read_again(), group="plan")
            if isinstance(answer, SessionRequest):
                await window.open_session(answer)
            elif isinstance(answer, PlanRest) and not is_read_only(window):
                self._ask_goal(rest=True)

        window.push_screen(PlanProgressScreen(window.keymap, window.clock, work), go)

    async def _read_again(self) -> None:
        """Have the session read the plan, to which a dispatch and ended tasks were written."""
        await self._window.ask(OpenPlan())

    def _ask_goal(self, *, rest: bool = False) -> None:
        from agent_workbench.tui.screens.dialog import ReasonDialog

        update = self._window.update_shown
        last = update.state.planning if update is not None else None

        async def propose(goal: str | None) -> None:
            if goal is not None:
                over = update is not None and update.state.plan.over and not rest
                await self._window.want(ProposePlan(goal, replaces=over, rest=rest))

        asks = "what the plan is to reach, in a line"
        title = "Plan anew what is not over" if rest else "Ask for a plan"
        goal = last.goal if last is not None and last.aside is not None else ""
        self._window.push_screen(ReasonDialog(title, "ask the model for a plan", "back", asks, goal), propose)

    def _open(self, title: str, wanted: OpenPlan, *, editable: bool = True) -> None:
        from agent_workbench.tui.screens.plan_text import PlanTextDialog

        # A key that was queued opens no second dialog.
        if not isinstance(self._window.screen, PlanTextDialog):
            self._window.push_screen(PlanTextDialog(title, wanted, self._window.ask, editable=editable))

    def _ask_reason(self, row: TaskRow) -> None:
        from agent_workbench.tui.screens.dialog import ReasonDialog

        async def block(reason: str | None) -> None:
            if reason is not None:
                await self._window.want(BlockTask(row.id, reason.strip()))

        self._window.push_screen(
            ReasonDialog(f"Block {row.id}", "block it", "leave it as it is", "why, in a line; it stands in the plan"),
            block,
        )
