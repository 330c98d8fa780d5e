"""Checks and commands may leave anything behind: the next one does not see it, and nobody waits for it."""

import subprocess
from pathlib import Path

import pytest

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import CheckpointTaken, TestsFinished
from agent_workbench.core.settings import Approval, Approvals, Permission, Settings
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.front import in_front_of
from tests.engine.killing import run_until_killed
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change, reopened, task

WROTE = ("wrong", "right")
COMMANDS = Settings(tools_allowed=("run_command", "write_diff", "finish"))
PIPES = "rm -f .gitignore answer.txt; mkfifo .gitignore answer.txt pipe; mkdir -p out/x; truncate -s 2T out/huge"


def checks_of(stage: Stage, purpose: CheckPurpose) -> TestsFinished:
    return next(each for each in stage.events if isinstance(each, TestsFinished) and each.purpose is purpose)


async def test_a_check_hides_no_code_from_the_next_one(tmp_path: Path) -> None:
    hides = "mkdir -p pkg; echo x > pkg/__init__.py; printf '*' > pkg/.gitignore; echo pkg > .gitignore; touch pkg.pyc"
    checks = (f"{hides}; grep -q right answer.txt", "test ! -e pkg && test ! -e .gitignore && test ! -e pkg.pyc")
    async with a_stage(
        tmp_path, [change(*WROTE), FINISH], tasks=(task(accept=checks),), approvals=OPEN, headless=True
    ) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        checked = checks_of(stage, CheckPurpose.AFTER_DIFF)
        assert [result.exit_code for result in checked.results] == [0, 0]
        assert checked.removed_paths == (".gitignore", "pkg/")


async def test_a_check_runs_on_approved_files_alone(tmp_path: Path) -> None:
    checks = ("grep -q right answer.txt", "test ! -e mine.txt")
    approvals = Approvals(check=Approval.ASK, commit=Approval.AUTO)
    async with (
        a_stage(tmp_path, [change(*WROTE), FINISH], tasks=(task(accept=checks),), approvals=approvals) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.CHECK)
        await front.approve(Permission.DIFF)
        waiting = await front.gate(Permission.CHECK)
        run = stage.state.run
        assert run is not None
        Path(run.workspace.path, "mine.txt").write_text("by hand\n")
        assert await front.approve(Permission.CHECK) == waiting
        await front.gate(Permission.MERGE)
        checked = checks_of(stage, CheckPurpose.AFTER_DIFF)
        assert [result.exit_code for result in checked.results] == [0, 0]
        assert checked.removed_paths == ("mine.txt",)
        kept = [each.checkpoint.commit for each in stage.events if isinstance(each, CheckpointTaken)]
        assert stage.git("show", f"{kept[-1]}:mine.txt") == "by hand"


async def test_what_approved_rules_ignore_is_there_for_the_next_check(tmp_path: Path) -> None:
    start = {"answer.txt": "wrong\n", ".gitignore": "build/\n*.pyc\n"}
    checks = (
        "mkdir -p build; touch build/x a.pyc; grep -q right answer.txt",
        "test -e build/x && test ! -e a.pyc",
    )
    async with a_stage(
        tmp_path,
        [change(*WROTE), FINISH],
        tasks=(task(accept=checks),),
        approvals=OPEN,
        headless=True,
        start=start,
    ) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        assert checks_of(stage, CheckPurpose.AFTER_DIFF).removed_paths == ()


async def test_nobody_waits_for_what_a_check_left(tmp_path: Path) -> None:
    checks = (f"grep -q right answer.txt; code=$?; {PIPES}; exit $code",)
    async with a_stage(
        tmp_path, [change(*WROTE), FINISH], tasks=(task(accept=checks),), approvals=OPEN, headless=True
    ) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        checked = checks_of(stage, CheckPurpose.AFTER_DIFF)
        assert (checked.restored_paths, checked.removed_paths) == (("answer.txt",), (".gitignore", "out/", "pipe"))


async def test_odd_names_that_a_check_left_are_told_apart(tmp_path: Path) -> None:
    checks = ("touch ' ' 'a, b' c; grep -q right answer.txt",)
    async with a_stage(
        tmp_path, [change(*WROTE), FINISH], tasks=(task(accept=checks),), approvals=OPEN, headless=True
    ) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        assert checks_of(stage, CheckPurpose.AFTER_DIFF).removed_paths == ('" "', '"a, b"', "c")


async def test_nobody_waits_for_what_an_interrupted_check_left(tmp_path: Path) -> None:
    sayings = [change(*WROTE), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, TestsFinished, before=True)
        run = stage.state.run
        assert run is not None
        subprocess.run(["/bin/sh", "-c", PIPES], cwd=run.workspace.path, check=True)
        async with reopened(stage, sayings) as again:
            assert (await run_unattended(again.session, again.recorder, (T1,))).exit_code is ExitCode.DONE


async def test_a_cache_that_ignores_itself_is_not_offered_to_be_kept(tmp_path: Path) -> None:
    line = "mkdir .cache; echo '*' > .cache/.gitignore; echo x > .cache/x; echo right > answer.txt; mkfifo pipe"
    open_ = Approvals(check=Approval.AUTO, command=Approval.AUTO)
    sayings = [call("run_command", f'{{"command": "{line}"}}'), FINISH]
    async with a_stage(tmp_path, sayings, approvals=open_, settings=COMMANDS) as stage, in_front_of(stage) as front:
        await front.start()
        assert (await front.approve(Permission.DIFF)).paths == ("answer.txt",)
        await front.gate(Permission.COMMIT)
        assert "These cannot be kept and were removed: .cache/, pipe" in stage.model.requests[1].messages[-1].text


@pytest.mark.parametrize("inside", ["", "src/"])
async def test_rules_of_a_commands_own_hide_nothing(inside: str, tmp_path: Path) -> None:
    start = {"answer.txt": "wrong\n", "src/app.txt": "old\n"}
    line = f"printf 'hidden.txt\\\\n.gitignore\\\\n' > {inside}.gitignore; echo x > {inside}hidden.txt"
    line += "; echo new > src/app.txt"
    open_ = Approvals(check=Approval.AUTO, command=Approval.AUTO)
    sayings = [call("run_command", f'{{"command": "{line}"}}'), FINISH]
    async with (
        a_stage(tmp_path, sayings, approvals=open_, settings=COMMANDS, start=start) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        shown = (await front.gate(Permission.DIFF)).paths
        assert shown == tuple(sorted((f"{inside}.gitignore", f"{inside}hidden.txt", "src/app.txt")))
