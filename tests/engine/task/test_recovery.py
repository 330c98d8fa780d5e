"""A kill within an action: what is on record counts, nothing is done twice, and nobody is told what is not so."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import (
    ActionFinished,
    ActionResult,
    ActionStarted,
    CheckpointTaken,
    Event,
    PatchApplied,
    TaskCommitted,
    TaskRolledBack,
    TestsFinished,
)
from agent_workbench.core.ids import CommitId
from agent_workbench.core.intents import AbortTask
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.settings import Approval
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.front import in_front_of
from tests.engine.killing import run_until_killed
from tests.engine.stage import FINISH, OPEN, SESSION, T1, Stage, a_stage, call, change, kinds, reflexion, reopened

RIGHT, WRONG = change("wrong", "right"), change("wrong", "rigth")
READ = call("read_file", '{"path": "answer.txt"}')
AGAIN = change("rigth", "right")


def finished_of(events: list[Event], started: int) -> ActionFinished:
    """Return how the action ended that was started as the `started`th, the only time it ended."""
    wanted = [event for event in events if isinstance(event, ActionStarted)][started - 1]
    (found,) = [
        event for event in events if isinstance(event, ActionFinished) and event.proposal_id == wanted.proposal_id
    ]
    return found


def told(stage: Stage, request: int = 0) -> str:
    """Return all that the model was shown in a request."""
    return "\n".join(message.text for message in stage.model.requests[request].messages)


async def test_a_diff_that_is_on_record_is_told_as_applied(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, PatchApplied)
        assert kinds(stage.events)[-1] == "PatchApplied"
        async with reopened(stage, [FINISH]) as again:
            ending = await run_unattended(again.session, again.recorder, (T1,))
            assert ending.exit_code is ExitCode.DONE, ending
        assert finished_of(stage.events, 2).result is ActionResult.OK
        assert "Applied to answer.txt." in told(again)
        assert "unknown" not in told(again)
        assert kinds(stage.events).count("PatchApplied") == 1
        taken = [event for event in stage.events if isinstance(event, CheckpointTaken)]
        assert stage.git("show", f"{taken[0].checkpoint.commit}:answer.txt") == "right"


async def test_checks_that_are_on_record_are_told_and_fail_once(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [WRONG], approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, TestsFinished, 2)
        ran = len(stage.shell.lines)
        async with reopened(stage, [reflexion(), AGAIN, FINISH]) as again:
            ending = await run_unattended(again.session, again.recorder, (T1,))
            assert ending.exit_code is ExitCode.DONE, ending
        finished = finished_of(stage.events, 3)
        assert finished.result is ActionResult.OK
        assert "Checks failed." in told(again)
        assert "unknown" not in told(again)
        assert len(stage.shell.lines) == ran + 1, "only the checks of the next diff ran"


async def test_failed_checks_that_are_settled_count_once(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [WRONG], approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, TestsFinished, 2)
        limits = replace(stage.settings.limits, consecutive_failure_threshold=2)
        stage.settings = replace(stage.settings, limits=limits)
        async with reopened(stage, [reflexion(), AGAIN, FINISH]) as again:
            ending = await run_unattended(again.session, again.recorder, (T1,))
            assert ending.exit_code is ExitCode.DONE, ending


async def test_a_commit_that_is_on_record_is_the_outcome(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, TaskCommitted)
        async with reopened(stage) as again:
            ending = await run_unattended(again.session, again.recorder, (T1,))
            assert ending.exit_code is ExitCode.DONE, ending
        finished = [event for event in stage.events if isinstance(event, ActionFinished)][-1]
        (committed,) = [event for event in stage.events if isinstance(event, TaskCommitted)]
        assert (finished.result, finished.observation) == (
            ActionResult.OK,
            f"committed {committed.commit[:10]} on agent/T-1",
        )
        assert stage.git("rev-parse", "agent/T-1") == committed.commit


async def test_what_left_nothing_on_record_is_unknown_and_taken_back(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, PatchApplied, before=True)
        assert stage.state.run is not None
        answer = Path(stage.state.run.workspace.path) / "answer.txt"
        assert answer.read_text() == "right\n", "it was written, and nobody knows"
        answer.with_name("mine.txt").write_text("by hand\n")
        async with reopened(stage, [READ, RIGHT, FINISH]) as again:
            ending = await run_unattended(again.session, again.recorder, (T1,))
            assert ending.exit_code is ExitCode.DONE, ending
        assert told(again, 1).endswith("wrong")
        assert finished_of(stage.events, 2).result is ActionResult.UNKNOWN
        assert "what came of it is unknown, and the files were put back" in told(again)
        assert not answer.with_name("mine.txt").exists()
        kept, *_ = [event.checkpoint.commit for event in stage.events if isinstance(event, CheckpointTaken)]
        assert stage.git("show", f"{kept}:mine.txt") == "by hand", "what a user wrote meanwhile is kept"


@pytest.mark.parametrize("release", [False, True], ids=["worktree kept", "worktree gone"])
async def test_a_commit_that_was_never_recorded_is_withdrawn_by_an_abort(tmp_path: Path, *, release: bool) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, TaskCommitted, before=True)
        made = CommitId(stage.git("rev-parse", "agent/T-1"))
        assert made != stage.user.head()
        assert stage.state.run is not None
        if release:
            stage.git("worktree", "remove", "--force", stage.state.run.workspace.path)
        stage.headless = False
        stage.settings = replace(stage.settings, approvals=replace(OPEN, commit=Approval.ASK))
        async with reopened(stage) as again, in_front_of(again) as front:
            if release:
                await front.told("was not there; it was made")
            await front.until(lambda it: it.state.run and it.state.run.gate.waiting)
            await front.submit(AbortTask())
            update = await front.over()
            assert update.state.run is not None
            assert update.state.run.status is TaskStatus.FAILED
            assert not stage.git("branch", "--list", "agent/*")
            assert await again.ports.workspaces.task_commit(T1) is None
        assert stage.git("rev-parse", f"refs/agent/{SESSION}/withdrawn/{made[:12]}") == made
        assert kinds(stage.events).count("TaskRolledBack") == 1
        assert not [event for event in stage.events if isinstance(event, TaskCommitted)]
        assert [event.to for event in stage.events if isinstance(event, TaskRolledBack)] == [stage.user.head()]
