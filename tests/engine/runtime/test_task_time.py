"""The time of a task bounds its commands, its answers and its checks; a task that has used it ends failed."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ModelInterrupted, TestsFinished
from agent_workbench.core.ids import CommitId, ProposalId
from agent_workbench.core.plan import Budget, Task
from agent_workbench.core.repo.workspace import TIMED_OUT, WorkspaceFacts
from agent_workbench.core.settings import Limits
from agent_workbench.core.state.session_state import Phase, TaskRun
from agent_workbench.engine.answer.streaming import OUT_OF_TIME
from agent_workbench.engine.flow import RollBack, next_move
from agent_workbench.engine.runtime.budget import seconds_left, spent
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.tools.check_runs import TIME_IS_OVER
from tests.engine.stage import OPEN, T1, a_stage, task
from tests.engine.test_flow import state_of
from tests.fakes.ports import Hang

SHORT = Budget(minutes=0.2 / 60)
P1 = ProposalId("P-1")


async def test_a_command_and_the_task_end_when_its_time_is_used(tmp_path: Path) -> None:
    slow = replace(task(accept=("echo one", "sleep 600", "echo never")), budget=SHORT)
    async with a_stage(tmp_path, tasks=(slow,), approvals=OPEN, headless=True) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        (finished,) = [event for event in stage.events if isinstance(event, TestsFinished)]
    assert ending.exit_code is ExitCode.FAILED
    assert "seconds of work were used of the" in ending.reason
    assert [result.exit_code for result in finished.results] == [0, None, None]
    # The command itself might have run for longer.
    assert TIME_IS_OVER in finished.results[1].output
    assert TIMED_OUT not in finished.results[1].output


async def test_an_answer_and_the_task_end_when_its_time_is_used(tmp_path: Path) -> None:
    slow = replace(task(accept=()), budget=SHORT)
    async with a_stage(tmp_path, [Hang("Thought: I")], tasks=(slow,), approvals=OPEN, headless=True) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        (broken,) = [event for event in stage.events if isinstance(event, ModelInterrupted)]
        run = stage.state.run
    assert ending.exit_code is ExitCode.FAILED
    assert (broken.partial, broken.what) == ("Thought: I", OUT_OF_TIME)
    assert run is not None
    assert seconds_left(run) == 0


@pytest.mark.parametrize(("minutes", "rolled_back"), [(1.0, True), (2.0, False), (None, False)])
def test_no_check_begins_after_the_time_is_used(minutes: float | None, *, rolled_back: bool) -> None:
    definition = Task(T1, "It", budget=Budget(minutes=minutes))
    started = e.TaskStarted(T1, definition, WorkspaceFacts("/w", "b", CommitId("c"), "t"), ("test",), (), 1)
    applied = (e.CodeRetrieved("q", ()), e.PatchApplied(P1, ("a",), "sha", "u"))
    state = state_of(started, *applied)
    assert state.run is not None
    state = replace(state, main=replace(state.run, working_seconds=61.0))
    move = next_move(state)
    assert (move == RollBack("1.0 minutes of work were used of the 1 in the task's budget")) is rolled_back
    assert state.run is not None
    assert state.run.check_purpose is CheckPurpose.AFTER_DIFF


@pytest.mark.parametrize(("baseline", "left"), [(0.0, 30.0), (45.0, 30.0), (60.0, 0.0), (70.0, 0.0)])
def test_the_baseline_counts_only_if_it_needs_the_whole_time(baseline: float, left: float) -> None:
    definition = Task(T1, "It", budget=Budget(minutes=1))
    run = TaskRun(T1, definition, WorkspaceFacts("/w", "b", CommitId("c"), "t"), (), 0, working_seconds=30.0 + baseline)
    run = replace(run, baseline=(CheckResult("make test", 0, "", baseline),))
    assert seconds_left(run) == left


@pytest.mark.parametrize("phase", [Phase.STEPPING, Phase.REFLECTING, Phase.COMPACTING])
def test_time_that_is_left_by_a_rounding_counts(phase: Phase) -> None:
    definition = Task(T1, "It", budget=Budget(minutes=1))
    run = TaskRun(T1, definition, WorkspaceFacts("/w", "b", CommitId("c"), "t"), (), 0, phase=phase)
    assert seconds_left(replace(run, working_seconds=59.5), used=0.6) == 0
    assert spent(replace(run, working_seconds=60.001), Limits())
