from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.events import CodeRetrieved
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.workspace import RepoFacts
from agent_workbench.core.settings import Approval, Settings
from agent_workbench.engine.task.task_start import uncommitted_paths, unlinked
from tests.engine.stage import OPEN, a_stage, change, task
from tests.engine.test_executor import run


def _facts(*dirty: str) -> RepoFacts:
    return RepoFacts("/repo", "/repo/.git", "/repo/.git", CommitId("0" * 40), "main", dirty)


def test_what_the_workbench_writes_into_the_plan_is_no_change_of_the_users() -> None:
    assert uncommitted_paths(_facts(".agent.yml", "memory/plans/PLAN.yaml"), "memory") == ""
    assert uncommitted_paths(_facts("a.py", "memory/plans/PLAN.yaml", "memory.py"), "memory/") == "a.py, memory.py"
    assert uncommitted_paths(_facts(*"abcde"), "memory") == "a, b, c and 2 more"


def test_what_is_in_a_linked_folder_is_linked() -> None:
    wanted = ("a", "a/b/", "ab", "c/")
    assert unlinked(wanted, ("a/", "c")) == ("ab",)
    assert unlinked(wanted, ()) == wanted


@pytest.mark.parametrize(
    ("own", "accept", "told"),
    [("true 1", ("true 2",), "true 1"), ("", ("true 2", "true 3"), "true 2"), ("", (), "")],
)
async def test_the_first_prompt_tells_the_command_that_runs_the_tests(
    tmp_path: Path, own: str, accept: tuple[str, ...], told: str
) -> None:
    async with a_stage(
        tmp_path,
        [change("wrong", "right")],
        tasks=(task(accept=accept),),
        settings=Settings(test_command=own),
        approvals=replace(OPEN, diff=Approval.ASK),
        headless=True,
    ) as stage:
        await run(stage)
        assert [each.map.test_command for each in stage.events if isinstance(each, CodeRetrieved) and each.map] == [
            told
        ]
