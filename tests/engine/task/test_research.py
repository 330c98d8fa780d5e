"""A task of intent research changes nothing, whatever its scope and the model say; it ends with an answer."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.settings import Permission, Settings
from agent_workbench.core.task_estimates import Intent
from tests.engine.stage import FINISH, OPEN, a_stage, call, change, task
from tests.engine.test_executor import run

RESEARCH = replace(task(accept=()), intent=Intent.RESEARCH)
EVERY = Settings(tools_allowed=(*Settings().tools_allowed, "run_command"))


async def test_only_tools_that_change_nothing_are_offered_and_the_end_needs_nobody(tmp_path: Path) -> None:
    sayings = [change("wrong", "right"), call("run_command", "touch a"), FINISH]
    async with a_stage(tmp_path, sayings, settings=EVERY, approvals=OPEN, tasks=(RESEARCH,), headless=True) as stage:
        ending = await run(stage)
        assert ending.exit_code is ExitCode.DONE, ending.reason
        started = next(each for each in stage.events if isinstance(each, e.TaskStarted))
        kinds = {spec.permission for spec in started.specs}
        assert kinds <= {Permission.READ, Permission.CHECK, Permission.FINISH}
        assert {"read_file", "search_code", "note", "finish"} <= set(started.tools)
        assert len([each for each in stage.events if isinstance(each, e.ActionRejected)]) == 2
        assert not [each for each in stage.events if isinstance(each, e.PatchApplied | e.TaskCommitted)]
        end = next(each for each in stage.events if isinstance(each, e.TaskFinished))
        assert (end.status, end.reason) == (TaskStatus.DONE, "the answer is right")
        decided = [each.by for each in stage.events if isinstance(each, e.ActionDecided)]
        assert decided[-1] == "policy:intent=research"
        assert "it changes nothing" in stage.model.requests[0].messages[1].text


@pytest.mark.parametrize("intent", [Intent.CODE, None])
async def test_any_other_task_may_change_what_its_scope_allows(tmp_path: Path, intent: Intent | None) -> None:
    sayings = [change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, tasks=(replace(task(), intent=intent),)) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        assert [each for each in stage.events if isinstance(each, e.PatchApplied)]
