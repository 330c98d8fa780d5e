"""The plan changed while a task runs: at any time, through its file, on record."""

from pathlib import Path

import pytest

from agent_workbench.core.errors import PlanError
from agent_workbench.core.events import Author, PlanRead, TaskStatusChanged
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import BlockTask, EditPlan, MoveTask, OpenFile, OpenPlan
from agent_workbench.core.outcomes import Accepted, FileOpened, PlanOpened, Refused
from agent_workbench.core.plan import TaskStatus
from agent_workbench.engine.session.intents import carry_out, look_up
from agent_workbench.engine.task.task_start import start_task
from tests.engine.stage import ANSWER, T1, a_stage, task

T2 = TaskId("T-2")


async def test_the_plan_is_changed_while_a_task_runs(tmp_path: Path) -> None:
    async with a_stage(tmp_path, tasks=(task(), task("T-2"))) as stage:
        await start_task(stage.session, T1)
        await carry_out(stage.session, MoveTask(T2, up=True))
        assert [each.id for each in stage.state.plan.tasks] == [T2, T1]
        await carry_out(stage.session, BlockTask(T2, "no key"))
        assert stage.state.plan.task(T2).blocked_because == "no key"
        assert TaskStatusChanged(T2, TaskStatus.BLOCKED, "no key") in stage.events
        refused = await carry_out(stage.session, BlockTask(T1, "why not"))
        assert stage.state.plan.task(T1).status is TaskStatus.IN_PROGRESS
        assert isinstance(refused, Refused)
        assert "being worked on" in refused.reason
        await carry_out(stage.session, BlockTask(T2, blocked=False))
        assert stage.state.plan == stage.plan.plan
        assert stage.state.plan.task(T2).status is TaskStatus.PENDING
        read = [event for event in stage.events if isinstance(event, PlanRead)]
        assert [event.by for event in read[1:]] == [Author.USER]


async def test_an_edited_text_is_kept_or_comes_back_with_its_fault(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await start_task(stage.session, T1)
        opened = await carry_out(stage.session, OpenPlan())
        assert isinstance(opened, PlanOpened)
        with pytest.raises(PlanError, match=r"^memory/plans/PLAN.yaml:1:3"):
            await carry_out(stage.session, EditPlan(opened.piece, "a: b"))
        assert await carry_out(stage.session, EditPlan(opened.piece, "another")) == Accepted()
        assert stage.state.plan.goal == "another"
        assert stage.read_back().plan.goal == "another"


async def test_a_file_of_the_workspace_is_shown_at_a_line(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await start_task(stage.session, T1)
        assert await look_up(stage.session, OpenFile(ANSWER, 9)) == FileOpened(ANSWER, 1, "wrong")
