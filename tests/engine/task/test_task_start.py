from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.checks.results import all_passed
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import CodeRetrieved, ModelAnswered, TestsFinished
from agent_workbench.core.ids import CommitId
from agent_workbench.core.intents import RetryTrouble
from agent_workbench.core.repo.workspace import RepoFacts
from agent_workbench.core.settings import Approval, Permission, Settings, WorkspaceSettings
from agent_workbench.engine.task.task_start import uncommitted_paths
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, a_stage, change, reopened, task
from tests.engine.test_executor import run


def _facts(*dirty: str) -> RepoFacts:
    return RepoFacts("/repo", "/repo/.git", "/repo/.git", CommitId("0" * 40), "main", dirty)


def test_what_the_workbench_writes_into_the_plan_is_no_change_of_the_users() -> None:
    assert uncommitted_paths(_facts(".agent.yml", "memory/plans/PLAN.yaml"), "memory") == ""
    assert uncommitted_paths(_facts("a.py", "memory/plans/PLAN.yaml", "memory.py"), "memory/") == "a.py, memory.py"
    assert uncommitted_paths(_facts(*"abcde"), "memory") == "a, b, c and 2 more"


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


NEEDED = {"src/app.py": "x", ".gitignore": "_*.py\n"}
NEEDS = 'python3 -c "import src._version"'


async def test_a_baseline_that_misses_a_file_of_the_checkout_stops_before_the_model(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [FINISH], tasks=(task(accept=(NEEDS,)),), approvals=OPEN, headless=True, start=NEEDED
    ) as stage:
        stage.user.write("src/_version.py", "x = 1\n")
        ending = await run(stage)
        assert ending.exit_code is ExitCode.ENVIRONMENT
        trouble = stage.state.trouble
        assert trouble is not None
        assert "src/_version.py" in trouble.what
        assert "workspace.link: [src/_version.py]" in trouble.advice
        assert not {TestsFinished, ModelAnswered} & {type(each) for each in stage.events}
        await stage.session.close()
        await stage.recorder.close()
        linking = replace(stage.settings, workspace=WorkspaceSettings(link=("src/_version.py",)))
        async with reopened(replace(stage, settings=linking), [FINISH] * 2) as again:
            await run(again)
            baseline, *_ = (each for each in again.events if isinstance(each, TestsFinished))
            assert all_passed(baseline.results)


async def test_a_retry_goes_on_without_the_file(tmp_path: Path) -> None:
    tasks = (task(accept=(NEEDS,)),)
    async with (
        a_stage(tmp_path, [change("x", "y", "src/app.py")], tasks=tasks, start=NEEDED) as stage,
        in_front_of(stage) as front,
    ):
        stage.user.write("src/_version.py", "x = 1\n")
        await front.start()
        await front.approve(Permission.CHECK)
        await front.trouble()
        await front.submit(RetryTrouble())
        await front.approve(Permission.CHECK)
        await front.gate(Permission.DIFF)
        assert stage.session.run.baseline is not None


async def test_a_package_that_the_checks_cannot_import_is_told_before_the_model_is_asked(tmp_path: Path) -> None:
    needs = 'python3 -c "import listed_but_absent"'
    start = {"src/app.py": "x", "setup.cfg": "install_requires =\n    listed-but-absent>=1\n"}
    tasks = (task(accept=(needs,)),)
    async with (
        a_stage(tmp_path, [change("x", "y", "src/app.py")], tasks=tasks, start=start) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.CHECK)
        await front.told("could not import listed_but_absent, which setup.cfg lists")
