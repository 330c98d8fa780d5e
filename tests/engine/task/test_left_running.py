"""A command that is left running: what reaches it, what is told of it, and that it ends with the task."""

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.errors import ExitCode, StorageError
from agent_workbench.core.events import (
    ActionFinished,
    ActionRejected,
    ActionResult,
    Event,
    TaskFinished,
    TestsFinished,
)
from agent_workbench.core.intents import AbortTask, RetryTrouble, StopAction
from agent_workbench.core.live import LeftRunning
from agent_workbench.core.outcomes import Accepted
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.settings import Approval, Approvals, Permission, Rule, SandboxSettings, Settings
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.background_holder import NONE
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.gate.proposal_views import describe
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change, reopened, task
from tests.fakes.ports import Saying

COMMANDS = Settings(tools_allowed=("run_command", "write_diff", "finish"))
PYTHON = shlex.quote(sys.executable)
SERVER = f"{PYTHON} -m http.server 8123"
GET = f"{PYTHON} -c \"from urllib.request import urlopen; print(urlopen('http://127.0.0.1:8123/answer.txt').read())\""
READ, STOP = call("background", '{"action": "read"}'), call("background", '{"action": "stop"}')
# Ignores what can be ignored, leaves its session and parents, and floods.
STUBBORN = f"""{PYTHON} -I -S -c '
import os, signal, sys
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
os.fork() or (os.setsid(), os.fork())
while True: print("flood" * 20)'"""

pytestmark = pytest.mark.usefixtures("needs_sandbox")


def runs(line: str) -> str:
    quoted = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return call("run_command", f'{{"command": "{quoted}"}}')


@asynccontextmanager
async def stage_of(
    folder: Path, sayings: Sequence[Saying], approvals: Approvals = OPEN, *, accept: str = "grep -q right answer.txt"
) -> AsyncIterator[Stage]:
    """Open an unattended session with the real sandbox."""
    tasks = (task(accept=(accept,)),)
    async with a_stage(
        folder, sayings, tasks=tasks, settings=COMMANDS, approvals=approvals, headless=approvals is OPEN
    ) as stage:
        shell = SandboxedShell(SandboxSettings(), str(folder / "repo"), os.environ)
        stage.session.ports = replace(stage.ports, shell=shell)
        yield stage


def told(stage: Stage) -> list[str]:
    """Return the observations of commands."""
    return [each.observation for each in stage.events if isinstance(each, ActionFinished)]


def survivors(folder: Path) -> list[str]:
    """Return the command lines of processes that work below `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


async def test_later_commands_reach_it_and_it_sees_each_change_until_the_task_ends(tmp_path: Path) -> None:
    sayings = [runs(f"{SERVER} &"), runs(GET), change("wrong", "right"), runs(GET), READ, FINISH]
    async with stage_of(tmp_path, sayings) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        started, before, after, read = (each for each in told(stage) if "8123" in each or "GET" in each)
        assert started.startswith("Left running. Commands after this one reach it at 127.0.0.1; checks do not.")
        assert "Serving HTTP on 0.0.0.0 port 8123" in started
        assert before.startswith("exit code 0\nb'wrong\\n'\n\nWritten by the command left running:\n")
        assert after.startswith("exit code 0\nb'right\\n'")
        assert [each.count("GET /answer.txt") for each in (before, after, read)] == [1, 1, 2]
        assert "Serving" in read
        assert not await asyncio.to_thread(survivors, tmp_path), "it has ended with the task"
        assert stage.read_back() == stage.state


async def test_no_check_reaches_it(tmp_path: Path) -> None:
    sayings = [runs(f"{SERVER} &"), change("wrong", "right"), FINISH]
    async with stage_of(tmp_path, sayings, accept=f"grep -q right answer.txt && ! {GET}") as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        assert stage.state.run is not None
        assert stage.state.run.status is TaskStatus.DONE


async def test_what_it_writes_is_in_no_approved_tree_and_in_no_check(tmp_path: Path) -> None:
    writes = "while :; do echo broken > answer.txt; echo x > new.txt; sleep 0.001; done 2>/dev/null"
    sayings = [runs(f"{writes} &"), change("wrong", "right"), runs("cat answer.txt"), FINISH]
    async with stage_of(tmp_path, sayings) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        checked = [each for each in stage.events if isinstance(each, TestsFinished)]
        assert [each.restored_paths + each.removed_paths for each in checked] == [(), ()]
        assert "exit code 0\nright\n" in [each.partition("\n\n")[0] + "\n" for each in told(stage)]
        assert stage.git("show", "agent/T-1:answer.txt") == "right"


async def test_a_stop_ends_it_and_another_can_start(tmp_path: Path) -> None:
    sayings = [READ, runs(f"{STUBBORN} &"), runs("sleep 300 &"), STOP, READ, runs("echo second; sleep 300 &"), STOP]
    async with stage_of(tmp_path, [*sayings, change("wrong", "right"), FINISH]) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        nothing, flood, stopped, again, second, _ = told(stage)[1:7]
        assert nothing == NONE
        assert flood.startswith("Left running.")
        assert "bytes before this …\nflood" in flood
        assert max(map(len, (flood, stopped))) < 2_500, "a flood is bounded"
        assert stopped.startswith("Stopped after ")
        assert again.startswith("As in step 1, word for word")
        assert second.endswith("Its output so far:\nsecond")
        (refused,) = [each.reason for each in stage.events if isinstance(each, ActionRejected)]
        assert "one command is left running already: " in refused
        assert not await asyncio.to_thread(survivors, tmp_path)


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("echo broken >&2; exit 7", "exit code 7"),
        ("sleep 300 & echo broken", "exit code 0"),
        ("echo broken; echo x > log.txt", "exit code 2"),
    ],
)
async def test_one_that_ends_at_once_says_why(tmp_path: Path, line: str, how: str) -> None:
    async with stage_of(tmp_path, [runs(f"{line} &"), change("wrong", "right"), FINISH]) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        ended = next(each for each in stage.events if isinstance(each, ActionFinished) and "broken" in each.observation)
        assert ended.result is ActionResult.FAILED
        assert ended.observation.startswith(f"It ended at once: {how}. What is left running has to stay in front")
        assert not await asyncio.to_thread(survivors, tmp_path)


async def test_the_next_command_tells_that_it_has_ended(tmp_path: Path) -> None:
    dies = "echo up; while test ! -e $TMPDIR/x && ! grep -q right answer.txt; do sleep 0.01; done; echo down; exit 7"
    sayings = [runs(f"{dies} &"), change("wrong", "right"), runs("true"), READ, FINISH]
    async with stage_of(tmp_path, sayings) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.DONE
        assert "exit code 0\n\n\nThe command left running has ended: exit code 7\ndown" in told(stage)
        assert NONE in told(stage)


async def test_a_person_sees_that_it_is_left_running_and_may_edit_that(tmp_path: Path) -> None:
    asking = replace(OPEN, command=Approval.ASK)
    async with (
        stage_of(tmp_path, [runs("echo up; sleep 300 &"), runs("echo up; sleep 300 &")], asking) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.COMMAND)
        assert describe(waiting) == ("command", "echo up; sleep 300 &", "left running until the task ends")
        assert describe(await front.edit(Permission.COMMAND, "echo up")) == ("command", "echo up", "")
        await front.approve(Permission.COMMAND)
        await front.until(lambda it: told(stage)[-1].endswith("exit code 0\nup"), "the edited command")
        await front.approve(Permission.COMMAND)
        shown = await front.until(lambda it: it.live.left_running and it.live.left_running.tail, "its output")
        assert shown.live.left_running == LeftRunning("echo up; sleep 300", "up\n")
        await front.until(lambda it: told(stage)[-1].startswith("Left running."), "its record")
        assert await front.outcome(AbortTask()) == Accepted()
        await front.until(lambda it: isinstance(stage.events[-1], TaskFinished), "the end")
        assert not await asyncio.to_thread(survivors, tmp_path)
        assert (await front.until(lambda it: it.live.left_running is None)).state.run is not None


async def test_the_session_ends_it_and_the_next_one_knows(tmp_path: Path) -> None:
    asking = replace(OPEN, diff=Approval.ASK)
    async with stage_of(tmp_path, [runs("sleep 300 &"), change("wrong", "right")], asking) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            assert await asyncio.to_thread(survivors, tmp_path)
        assert not await asyncio.to_thread(survivors, tmp_path)
        async with reopened(stage, [READ]) as again, in_front_of(again) as front:
            await front.reject(Permission.DIFF, "read first")
            await front.until(lambda it: NONE in told(again), "the answer")


async def test_who_stops_the_start_leaves_nothing(tmp_path: Path) -> None:
    asking = replace(OPEN, command=Approval.ASK)
    async with stage_of(tmp_path, [runs("sleep 300 &")], asking) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.approve(Permission.COMMAND)
        await front.until(lambda it: it.live.left_running, "the start")
        assert await front.outcome(StopAction(proposal.id)) == Accepted()
        await front.until(lambda it: it.state.run is not None and it.state.run.held, "a pause")
        ended = [each for each in stage.events if isinstance(each, ActionFinished)][-1]
        assert ended.result is ActionResult.STOPPED
        assert not await asyncio.to_thread(survivors, tmp_path)


async def test_one_whose_start_could_not_be_recorded_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Recorder.record

    async def full(recorder: Recorder, event: Event, *, after: int | None = None) -> object:
        if isinstance(event, ActionFinished) and event.observation.startswith("Left running."):
            monkeypatch.setattr(Recorder, "record", record)
            raise StorageError("the disk is full")
        return await record(recorder, event, after=after)

    monkeypatch.setattr(Recorder, "record", full)
    asking = replace(OPEN, diff=Approval.ASK)
    sayings = [runs("sleep 300 &"), change("wrong", "right")]
    async with stage_of(tmp_path, sayings, asking) as stage, in_front_of(stage) as front:
        await front.start()
        await front.until(lambda it: it.state.trouble, "the full disk")
        assert await asyncio.to_thread(survivors, tmp_path)
        assert await front.outcome(RetryTrouble()) == Accepted()
        await front.gate(Permission.DIFF)
        ended = [each for each in stage.events if isinstance(each, ActionFinished)][-1]
        assert ended.result is ActionResult.UNKNOWN
        assert not await asyncio.to_thread(survivors, tmp_path), "the model was not told that it runs"


async def test_without_a_sandbox_it_is_refused(tmp_path: Path) -> None:
    sayings = [runs("sleep 300 &"), change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, settings=COMMANDS, approvals=OPEN, holds=False) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.MERGE)
        (refused,) = [each.reason for each in stage.events if isinstance(each, ActionRejected)]
        assert "without a sandbox it could change files while checks run" in refused


async def test_a_rule_for_the_command_does_not_leave_it_running(tmp_path: Path) -> None:
    rules = replace(OPEN, command=Approval.ASK, rules=(Rule(Permission.COMMAND, program="sleep"),))
    async with (
        stage_of(tmp_path, [runs("sleep 0.01"), runs("sleep 300 &")], rules) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        assert (await front.gate(Permission.COMMAND)).text == "sleep 300 &"


async def test_it_is_offered_with_commands_alone(tmp_path: Path) -> None:
    async with a_stage(tmp_path, []) as stage:
        named = stage.session.tools.allowed_specs
        assert [each.name for each in named(("grep", "run_command"))] == ["grep", "run_command", "background"]
        assert [each.name for each in named(("background", "grep"))] == ["grep"]
