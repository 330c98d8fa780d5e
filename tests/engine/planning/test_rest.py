"""A plan for the rest: finished tasks stay, what is queued is withdrawn with the approval, and not before."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.core.events import ActionFinished, ActionResult, TasksWithdrawn
from agent_workbench.core.intents import ProposePlan
from agent_workbench.core.outcomes import Accepted
from agent_workbench.core.settings import Permission
from agent_workbench.core.task_estimates import Intent, TaskFigures
from tests.adapters.plans.plan_files import content
from tests.engine.front import in_front_of
from tests.engine.planning.test_planning import FLEET, idle, ids, planning

PLAN = """\
tasks:
  - {id: T-1, description: a, status: done, queued_as: T-1-abcdef}
  - {id: T-2, description: b, status: queued, queued_as: T-2-abcdef, depends_on: [T-1]}
  - {id: T-3, description: c, depends_on: [T-2]}
"""
ANSWER = (
    "Task: Wait\nAfter: \nTask: Go on\nIntent: code\nNeeds: gpu 24\nAfter: 1\nTask: Look\nIntent: research\nAfter: \n"
)


class Queue:
    """What tasks are withdrawn from; some of them have ended."""

    def __init__(self, *ended: str) -> None:
        self.ended = ended
        self.withdrawn: list[str] = []

    async def withdraw(self, names: Sequence[str], reason: str) -> Sequence[str]:
        self.withdrawn += names
        return [name for name in names if name in self.ended]


async def test_the_rest_is_replaced_when_the_new_plan_is_approved(tmp_path: Path) -> None:
    queue = Queue()

    async def past() -> Sequence[TaskFigures]:
        return [TaskFigures(steps, 100, 1.0, 0.0, Intent.CODE) for steps in (3, 5, 9)]

    async with planning(tmp_path, ANSWER, plan=PLAN, settings=FLEET) as stage, in_front_of(stage) as front:
        stage.session.ports = replace(stage.session.ports, withdraw=queue.withdraw, past_figures=past)
        assert await front.outcome(ProposePlan("otherwise", rest=True)) == Accepted()
        proposal = await front.gate(Permission.PLAN)
        assert ids(proposal) == ["T-4", "T-6", "T-5"], "what can begin at once comes first"
        assert proposal.plan is not None
        code = proposal.plan.tasks[2]
        assert code.estimate is not None
        assert (code.estimate.steps.median, code.estimate.samples, code.estimate.intent) == (5, 3, Intent.CODE)
        assert (queue.withdrawn, content(stage.user.root)) == ([], PLAN)
        await front.approve(Permission.PLAN)
        await idle(front)
        assert [task.id for task in stage.state.plan.tasks] == ["T-1", "T-4", "T-6", "T-5"]
        assert stage.state.plan.task(stage.state.plan.tasks[0].id).queued_as == "T-1-abcdef"
        assert queue.withdrawn == ["T-2-abcdef"]
        (withdrawn,) = [each for each in stage.events if isinstance(each, TasksWithdrawn)]
        assert withdrawn.names == ("T-2-abcdef",)


async def test_nothing_is_written_if_a_task_ended_meanwhile(tmp_path: Path) -> None:
    queue = Queue("T-2-abcdef")
    async with planning(tmp_path, ANSWER, plan=PLAN) as stage, in_front_of(stage) as front:
        stage.session.ports = replace(stage.session.ports, withdraw=queue.withdraw)
        assert await front.outcome(ProposePlan("otherwise", rest=True)) == Accepted()
        await front.gate(Permission.PLAN)
        await front.approve(Permission.PLAN)
        await front.until(lambda it: it.state.trouble is not None)
        assert content(stage.user.root) == PLAN
        finished = [each for each in stage.events if isinstance(each, ActionFinished)]
        assert (finished[-1].result, "T-2-abcdef ended meanwhile" in finished[-1].observation) == (
            ActionResult.REFUSED,
            True,
        )
        assert stage.state.waiting is not None, "the plan waits again"
