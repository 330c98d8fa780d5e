"""A pause: what waits or runs comes to its end, the model is not asked, and the user may do all the rest meanwhile."""

from pathlib import Path

from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ModelAnswered, PatchApplied, PauseChanged, TestsFinished
from agent_workbench.core.intents import PauseTask, RetryTrouble, SayToModel, StartTask, UndoStep
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.settings import Approval, Approvals, Permission
from agent_workbench.engine.flow import AwaitGo, next_move
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, a_stage, change, reopened

ASKED = Approvals(check=Approval.AUTO, commit=Approval.AUTO)
RIGHT = change("wrong", "right")


def _held(update: SessionUpdate) -> bool:
    return isinstance(next_move(update.state), AwaitGo)


async def test_a_pause_lets_the_step_end_and_takes_words_and_an_undo(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, RIGHT, FINISH], approvals=ASKED) as stage, in_front_of(stage) as front:
        assert await front.notice(PauseTask()) == "no task is being worked on"
        await front.start()
        await front.gate(Permission.DIFF)
        await front.submit(PauseTask())
        await front.until(lambda it: it.state.run and it.state.run.paused)
        assert await front.notice(PauseTask()) == "T-1 is paused already"
        await front.approve(Permission.DIFF)
        await front.until(_held, "a pause")
        assert sum(isinstance(event, TestsFinished) for event in stage.events) == 2, "what was begun came to its end"
        assert "finish or abort it first" in await front.notice(StartTask())
        assert "does not fit" in await front.notice(RetryTrouble())
        await front.submit(SayToModel("leave the README alone"))
        await front.submit(UndoStep())
        await front.until(lambda it: it.state.run and not it.state.run.changed)
        assert len(stage.model.requests) == 1, "nobody asked"
        await front.submit(PauseTask(paused=False))
        await front.gate(Permission.DIFF)
        told = stage.model.requests[-1].messages[-1].text
        assert told.index("leave the README alone") < told.index("took back the diff of step 1")


async def test_a_session_that_was_left_paused_stays_so_until_somebody_goes_on(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.CHECK)
            await front.submit(PauseTask())
            await front.approve(Permission.CHECK)
            await front.until(_held, "a pause")
        assert not [event for event in stage.events if isinstance(event, ModelAnswered)]
        async with reopened(stage) as again, in_front_of(again) as front:
            await front.until(_held, "a pause")
            assert again.model.requests == []
        stage.settings, stage.headless = replace(stage.settings, approvals=OPEN), True
        async with reopened(stage, [RIGHT, FINISH]) as last:
            ending = await run_unattended(last.session, last.recorder, (T1,))
            assert ending.exit_code is ExitCode.DONE, "without a screen nobody could go on"
        changes = [event.paused for event in stage.events if isinstance(event, PauseChanged)]
        assert changes == [True, False]
        assert [event for event in stage.events if isinstance(event, PatchApplied)]
