from pathlib import Path

from agent_workbench.core.events import TaskCommitted
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.settings import GateKind
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, T1, a_stage, change


async def test_a_task_from_plan_to_commit(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [change("wrong", "right"), FINISH]) as stage:
        before = stage.user.head()
        async with in_front_of(stage) as front:
            await front.start()
            baseline = await front.approve(GateKind.CHECK)
            assert baseline.commands == ("grep -q right answer.txt",)
            shown = await front.approve(GateKind.DIFF)
            assert shown.diff.endswith("-wrong\n+right\n")
            await front.approve(GateKind.CHECK)
            commit = await front.approve(GateKind.COMMIT)
            assert commit.diff == shown.diff
            assert commit.text.startswith("[Agent] Complete T-1: Make the answer right")
            await front.skip(GateKind.MERGE)
            await front.over()
        assert stage.plan.statuses == [(T1, TaskStatus.IN_PROGRESS), (T1, TaskStatus.DONE)]
        (committed,) = [event for event in stage.events if isinstance(event, TaskCommitted)]
        assert stage.git("show", f"{committed.commit}:answer.txt") == "right"
        assert stage.user.head() == before
