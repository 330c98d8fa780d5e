"""Start of a task that has no acceptance command: the model is asked for one first."""

from agent_workbench.core.events import PlanAsked
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import StartTask
from agent_workbench.core.intents.outcomes import Accepted
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.planning.plan_prompt import VERSION
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.submission import Submission, submission
from agent_workbench.engine.task.task_start import task_without_check


class CheckedStart:
    """Remembers the task that starts when the check which the model proposes for it is taken or left."""

    def __init__(self) -> None:
        self._task: TaskId | None = None

    async def ask(self, session: SessionContext, wanted: TaskId | None) -> Accepted | None:
        """Begin to ask for a check, None if the task can start without: once is enough for each task.

        Raises `PlanError` for a task that cannot be started.
        """
        state = session.state
        denied = state.config is not None and state.config.approvals.of(Permission.PLAN) is Approval.DENY
        task = await task_without_check(session, wanted)
        asked = state.planning.check_for if state.planning is not None else ""
        if task is None or denied or asked == task.id:
            return None
        self._task = task.id
        goal = "\n".join(filter(None, (task.description, task.goal, task.suggested_approach)))
        await session.record(PlanAsked(goal, VERSION, check_for=task.id))
        return Accepted(f"{task.id} has no check: the model proposes one first")

    def resumed(self, state: SessionState) -> Submission | None:
        """Return the start of the task after the decision about its check, None if the user stopped the question."""
        task, self._task = self._task, None
        planning = state.planning
        decision = planning.decision if planning is not None and planning.check_for == task else None
        goes_on = decision is not None and decision.verdict is not Verdict.ABORT
        return submission(StartTask(task)) if task is not None and goes_on else None
