"""Without a person: what is done again, what is gone on with, what keeps nothing back, and how it ends."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import (
    ExitCode,
    JournalError,
    LockedError,
    ModelUnavailable,
    StorageError,
    WorkbenchError,
    WorkspaceError,
)
from agent_workbench.core.events import (
    ActionFinished,
    ActionStarted,
    Event,
    PromptBuilt,
    Recorded,
    SessionLeft,
    TaskFinished,
    TaskStatusChanged,
    TestsFinished,
    TroubleMet,
)
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.intents import PauseTask
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.repo.workspace import WorkspaceRequest
from agent_workbench.core.settings import Limits, Settings
from agent_workbench.engine.session.unattended import UnattendedSession, run_unattended
from tests.engine.killing import run_until_killed
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, change, reopened, task

RIGHT, WRONG = change("wrong", "right"), change("wrong", "rigth")
T2, T3, T4 = TaskId("T-2"), TaskId("T-3"), TaskId("T-4")
NO_SECOND_TRY = Settings(limits=Limits(max_reflexion_retries=0))
ONE_FAILURE = Settings(limits=Limits(consecutive_failure_threshold=1))


def ends(stage: Stage) -> list[tuple[TaskId, TaskStatus]]:
    """Return how the tasks ended, in order."""
    return [(event.task, event.status) for event in stage.events if isinstance(event, TaskFinished)]


async def test_a_task_that_failed_is_done_again_when_it_is_asked_for(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [WRONG], approvals=OPEN, headless=True, settings=NO_SECOND_TRY) as stage:
        assert (await run_unattended(stage.session, stage.recorder, (T1,))).exit_code is ExitCode.FAILED
        async with reopened(stage, [RIGHT, FINISH]) as again:
            ending = await run_unattended(again.session, again.recorder, (T1,))
        assert ending.exit_code is ExitCode.DONE, ending
        assert ends(stage) == [(T1, TaskStatus.FAILED), (T1, TaskStatus.DONE)]


async def test_a_task_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        async with reopened(stage) as again:
            assert (await run_unattended(again.session, again.recorder, (T1,))).exit_code is ExitCode.DONE
        assert ends(stage) == [(T1, TaskStatus.DONE)]


async def test_all_goes_on_after_one_that_was_taken_up_and_failed(tmp_path: Path) -> None:
    tasks = (task(), task("T-2"))
    async with a_stage(tmp_path, [WRONG], tasks=tasks, approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, TestsFinished, 2)
        stage.settings = replace(NO_SECOND_TRY, approvals=OPEN)
        async with reopened(stage, [RIGHT, FINISH]) as again:
            ending = await run_unattended(again.session, again.recorder, None)
        assert ending.exit_code is ExitCode.FAILED
        assert ending.reason == "failed: T-1; done: T-2"
        assert ends(stage) == [(T1, TaskStatus.FAILED), (T2, TaskStatus.DONE)]


async def test_a_named_task_is_not_begun_after_the_one_before_it_failed(tmp_path: Path) -> None:
    tasks = (task(), task("T-2"))
    async with a_stage(tmp_path, [WRONG], tasks=tasks, approvals=OPEN, headless=True, settings=NO_SECOND_TRY) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1, T2))
        assert ending.exit_code is ExitCode.FAILED
        assert ends(stage) == [(T1, TaskStatus.FAILED)]


async def test_a_task_that_cannot_begin_is_blocked_and_the_others_are_done(tmp_path: Path) -> None:
    tasks = (task(), task("T-2"), replace(task("T-3"), depends_on=(T1, T2)), task("T-4"))
    sayings = [RIGHT, FINISH] * 3
    async with a_stage(tmp_path, sayings, tasks=tasks, approvals=OPEN, headless=True) as stage:
        ending = await run_unattended(stage.session, stage.recorder, None)
        assert ending.exit_code is ExitCode.PARKED
        assert "T-3 depends on several tasks that are not merged yet: T-1, T-2" in ending.reason
        assert ends(stage) == [(each, TaskStatus.DONE) for each in (T1, T2, T4)]
        assert stage.plan.plan.task(T3).status is TaskStatus.BLOCKED
        (blocked,) = [event for event in stage.events if isinstance(event, TaskStatusChanged) and event.task == T3]
        assert blocked.status is TaskStatus.BLOCKED
        assert "T-1, T-2" in blocked.reason


@pytest.mark.parametrize(
    ("error", "source", "code"),
    [
        (LockedError("T-1 is being worked on by session 7", holder="session 7"), "locked", ExitCode.LOCKED),
        (JournalError("line 3 is not what it was"), "journal", ExitCode.JOURNAL),
        (StorageError("the disk is full"), "storage", ExitCode.ENVIRONMENT),
        (WorkspaceError("the branch is gone"), "settle", ExitCode.ENVIRONMENT),
        (ModelUnavailable("it is gone"), "model", ExitCode.MODEL),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
async def test_what_is_met_on_the_way_is_told_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: WorkbenchError, source: str, code: ExitCode
) -> None:
    async with a_stage(tmp_path, approvals=OPEN, headless=True) as stage:
        await run_until_killed(stage, TestsFinished)
        async with reopened(stage) as again:

            async def broken(_: WorkspaceRequest) -> Workspace:
                raise error

            monkeypatch.setattr(again.ports.workspaces, "open", broken)
            ending = await run_unattended(again.session, again.recorder, (T1,))
        assert (ending.exit_code, str(error) in ending.reason) == (code, True)
        (met,) = [event for event in stage.events if isinstance(event, TroubleMet)]
        assert (met.source, met.what) == (source, str(error))
        assert isinstance(stage.events[-1], SessionLeft)


async def test_a_task_that_another_process_did_meanwhile_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = (task(), task("T-2"))
    async with a_stage(tmp_path, [RIGHT, FINISH], tasks=tasks, approvals=OPEN, headless=True) as stage:
        open_workspace = stage.ports.workspaces.open

        async def open_late(request: WorkspaceRequest) -> Workspace:
            if request.task == T1:
                stage.plan.plan = stage.plan.plan.with_status(T1, TaskStatus.DONE)
            return await open_workspace(request)

        monkeypatch.setattr(stage.ports.workspaces, "open", open_late)
        ending = await run_unattended(stage.session, stage.recorder, None)
        assert (ending.exit_code, ending.reason) == (ExitCode.DONE, "T-2 done: committed")
        assert ends(stage) == [(T2, TaskStatus.DONE)]
        assert await stage.ports.workspaces.taken((T1,), SessionId("")) == {}


async def test_a_task_whose_lock_another_process_has_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = (task(), task("T-2"))
    async with a_stage(tmp_path, [RIGHT, FINISH], tasks=tasks, approvals=OPEN, headless=True) as stage:
        open_workspace = stage.ports.workspaces.open

        async def locked(request: WorkspaceRequest) -> Workspace:
            if request.task == T1:
                raise LockedError("T-1 is being worked on by pid 7", holder="pid 7")
            return await open_workspace(request)

        monkeypatch.setattr(stage.ports.workspaces, "open", locked)
        ending = await run_unattended(stage.session, stage.recorder, None)
        assert ending.reason == "T-1 is held by pid 7; done: T-2"
        assert ending.exit_code is ExitCode.DONE


async def test_a_parked_task_ends_the_session_and_says_so(tmp_path: Path) -> None:
    tasks = (task(), task("T-2"), replace(task("T-3"), depends_on=(T1,)))
    async with a_stage(tmp_path, tasks=tasks, headless=True) as stage:
        ending = await run_unattended(stage.session, stage.recorder, None, elsewhere=(T1,))
        assert ending.exit_code is ExitCode.PARKED
        assert [(each.task, each.outcome) for each in ending.outcomes] == [(T2, "parked"), (T3, "waiting")]


@pytest.mark.parametrize("kind", [ActionStarted, PromptBuilt], ids=["in an action", "in an answer"])
async def test_it_ends_between_two_steps_and_goes_on_later(tmp_path: Path, kind: type[Event]) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True) as stage:
        session = UnattendedSession(stage.session, stage.recorder, (T1,))
        record = stage.recorder.record

        async def recording(event: Event, *, after: int | None = None) -> Recorded:
            recorded = await record(event, after=after)
            if isinstance(event, kind):
                await session.submit(PauseTask())
            return recorded

        stage.recorder.record = recording  # type: ignore[method-assign]  # the end is asked for at a known moment
        ending = await session.run()
        assert ending.exit_code is ExitCode.INTERRUPTED
        names = [type(event) for event in stage.events]
        assert names.count(ActionStarted) == names.count(ActionFinished), "what was begun was finished"
        assert names[-1] is SessionLeft
        async with reopened(stage, [RIGHT, FINISH]) as again:
            assert (await run_unattended(again.session, again.recorder, (T1,))).exit_code is ExitCode.DONE
        assert ends(stage) == [(T1, TaskStatus.DONE)]
