from dataclasses import replace
from pathlib import Path

import pytest

from agent_workbench.core.errors import ExitCode, PlanError, StorageError
from agent_workbench.core.events import ActionDecided, SessionLeft, TaskCommitted, TaskMerged, TaskStarted
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Owner, TaskStatus
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Approval, Approvals, GateKind, Limits, Settings
from agent_workbench.engine.headless import run_headless
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, a_stage, call, change, reopened, task
from tests.engine.test_executor import run

RIGHT = change("wrong", "right")


async def test_done(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        ending = await run(stage, "T-1")
        assert (ending.exit_code, ending.reason) == (ExitCode.DONE, "T-1 done: committed")
        assert stage.model.closed
        assert not [event for event in stage.events if isinstance(event, TaskMerged)]
        assert stage.events[-1] == SessionLeft("ended")


async def test_failed(tmp_path: Path) -> None:
    settings = Settings(limits=Limits(max_tool_calls_per_task=1))
    async with a_stage(tmp_path, ["hm"], settings=settings, approvals=OPEN, headless=True) as stage:
        ending = await run(stage, "T-1")
        assert ending.exit_code is ExitCode.FAILED
        assert ending.reason.startswith("T-1 failed: 1 tool calls")


@pytest.mark.parametrize(
    ("approvals", "kind"),
    [
        (Approvals(), GateKind.CHECK),
        (Approvals(check=Approval.AUTO), GateKind.DIFF),
        (Approvals(check=Approval.AUTO, diff=Approval.AUTO), GateKind.COMMIT),
    ],
)
async def test_parked_and_approved_the_next_morning(tmp_path: Path, approvals: Approvals, kind: GateKind) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=approvals, headless=True) as stage:
        ending = await run(stage, "T-1")
        assert ending.exit_code is ExitCode.PARKED
        assert f"waits for a person: {kind}" in ending.reason
        assert stage.state.unfinished
        left = list(stage.model.sayings)
        stage.headless = False
        async with reopened(stage, left) as again, in_front_of(again) as front:
            await front.approve(kind)
            while kind is not GateKind.COMMIT:
                kind = {GateKind.CHECK: GateKind.DIFF, GateKind.DIFF: GateKind.COMMIT}[kind]
                if approvals.check is Approval.ASK and kind is GateKind.COMMIT:
                    await front.approve(GateKind.CHECK)
                await front.approve(kind)
            await front.skip(GateKind.MERGE)
            await front.over()
            assert [event for event in again.events if isinstance(event, TaskCommitted)]


async def test_special_files_are_refused_unattended(tmp_path: Path) -> None:
    step = call("write_diff", "--- /dev/null\n+++ b/.gitattributes\n@@ -0,0 +1 @@\n+* -text\n")
    async with a_stage(tmp_path, [step, RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        decided = [event for event in stage.events if isinstance(event, ActionDecided)]
        (refused,) = [event for event in decided if event.verdict is Verdict.REJECT]
        assert (refused.by, ".gitattributes" in refused.reason) == ("policy:unattended", True)
        assert "The policy rejected that" in stage.model.requests[1].messages[-1].text


async def test_commands_without_a_sandbox_are_refused_unattended(tmp_path: Path) -> None:
    settings = Settings(tools_allowed=("run_command", "write_diff", "finish"))
    sayings = [call("run_command", '{"command": "touch ran"}'), RIGHT, FINISH]
    async with a_stage(tmp_path, sayings, settings=settings, approvals=OPEN, headless=True, holds=False) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        assert "touch ran" not in stage.shell.lines


async def test_what_is_denied_is_denied(tmp_path: Path) -> None:
    approvals = replace(OPEN, diff=Approval.DENY)
    settings = Settings(limits=Limits(max_tool_calls_per_task=2))
    async with a_stage(tmp_path, [RIGHT, RIGHT], settings=settings, approvals=approvals, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.FAILED
        assert "(diff: deny)" in stage.model.requests[1].messages[-1].text


async def test_trouble_that_is_not_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        set_status = stage.plan.set_status

        async def full(wanted: TaskId, status: TaskStatus) -> None:
            if status is TaskStatus.DONE:
                raise StorageError("the disk is full", advice="make room")
            await set_status(wanted, status)

        monkeypatch.setattr(stage.plan, "set_status", full)
        ending = await run(stage, "T-1")
        assert (ending.exit_code, ending.reason) == (ExitCode.ENVIRONMENT, "the disk is full (make room)")
        monkeypatch.undo()
        async with reopened(stage) as again:
            assert (await run(again, "T-1")).exit_code is ExitCode.DONE
            assert len([event for event in again.events if isinstance(event, TaskCommitted)]) == 1


async def test_every_task_in_its_order(tmp_path: Path) -> None:
    second = replace(task("T-2", accept=("grep -q best answer.txt",)), depends_on=(T1,))
    human = replace(task("T-3"), owner=Owner.HUMAN)
    sayings = [RIGHT, FINISH, change("right", "best"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=(second, human, task()), approvals=OPEN, headless=True) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.DONE
        assert [event.task for event in stage.events if isinstance(event, TaskStarted)] == ["T-1", "T-2"]


async def test_a_failure_keeps_back_only_what_depends_on_it(tmp_path: Path) -> None:
    second = replace(task("T-2"), depends_on=(T1,))
    third = task("T-3")
    settings = Settings(limits=Limits(max_tool_calls_per_task=2))
    sayings = ["hm", "hm", RIGHT, FINISH]
    async with a_stage(
        tmp_path, sayings, tasks=(task(), second, third), settings=settings, approvals=OPEN, headless=True
    ) as stage:
        ending = await run(stage)
        assert (ending.exit_code, ending.reason) == (ExitCode.FAILED, "failed: T-1")
        statuses = [each.status for each in stage.plan.plan.tasks]
        assert statuses == [TaskStatus.FAILED, TaskStatus.PENDING, TaskStatus.DONE]


async def test_nothing_to_do(tmp_path: Path) -> None:
    done = replace(task(), status=TaskStatus.DONE)
    async with a_stage(tmp_path, tasks=(done,), approvals=OPEN, headless=True) as stage:
        ending = await run(stage)
        assert (ending.exit_code, ending.reason) == (ExitCode.DONE, "no task is ready")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (replace(task(), owner=Owner.HUMAN), "belongs to a person"),
        (replace(task(), status=TaskStatus.DONE), "is done"),
        (replace(task(), depends_on=(TaskId("T-9"),)), "waits for T-9"),
    ],
)
async def test_what_cannot_be_started_ends_the_session_cleanly(tmp_path: Path, changed: object, message: str) -> None:
    assert isinstance(changed, type(task()))
    async with a_stage(tmp_path, tasks=(changed,), approvals=OPEN, headless=True) as stage:
        with pytest.raises(PlanError, match=message):
            await run_headless(stage.desk, stage.recorder, (T1,))
        assert isinstance(stage.events[-1], SessionLeft)
        assert stage.model.closed


async def test_a_task_that_failed_in_this_session_is_tried_again_when_named(tmp_path: Path) -> None:
    settings = Settings(limits=Limits(max_tool_calls_per_task=2))
    async with a_stage(tmp_path, ["hm", RIGHT], settings=settings, approvals=OPEN, headless=True) as stage:
        assert (await run(stage, "T-1")).exit_code is ExitCode.FAILED
        async with reopened(stage, ["hm", "hm"]) as again:
            assert (await run(again, "T-1")).exit_code is ExitCode.FAILED
        async with reopened(stage, [RIGHT, FINISH]) as third:
            assert (await run(third, "T-1")).exit_code is ExitCode.DONE
            assert len([event for event in third.events if isinstance(event, TaskStarted)]) == 3
            (committed,) = [event for event in third.events if isinstance(event, TaskCommitted)]
            assert stage.git("rev-parse", committed.branch) == committed.commit
