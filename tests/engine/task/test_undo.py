"""Undo: the files go back, the model is told, and whatever stops it, the journal and the files tell the same."""

from pathlib import Path

import pytest

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionResult,
    CheckpointTaken,
    Event,
    InterruptCause,
    ModelInterrupted,
    StepUndone,
    TestsFinished,
    UndoAsked,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import UndoStep
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Approval, Approvals, Permission, Settings
from agent_workbench.engine.executor import perform
from agent_workbench.engine.flow import Recover, Undo, next_move
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.task.undo import MADE_ON_OTHERS, ask_undo, lines_before
from tests.engine.front import Front, in_front_of
from tests.engine.killing import Killed, kill_at, run_until_killed
from tests.engine.stage import FINISH, OPEN, SESSION, T1, Stage, a_stage, call, change, only, reopened, task
from tests.fakes.ports import Hang, Saying

ASKED = Approvals(check=Approval.AUTO)
ANY = (task(accept=("true",)),)
FIRST, SECOND = change("wrong", "first"), change("first", "second")
WRITING = Hang("Thought: I")


def answer(stage: Stage) -> Path:
    """Return the file that the task is about, in its workspace."""
    assert stage.state.run is not None
    return Path(stage.state.run.workspace.path) / "answer.txt"


def told(stage: Stage) -> str:
    """Return what the model was told last."""
    return stage.model.requests[-1].messages[-1].text


def the_diff(stage: Stage) -> ProposalId:
    """Return the diff that is to be taken back."""
    assert stage.state.run is not None
    assert stage.state.run.undoing is not None
    return stage.state.run.undoing


def checks_run(stage: Stage) -> int:
    return sum(isinstance(event, TestsFinished) for event in stage.events)


def _writes(update: SessionUpdate) -> bool:
    return update.live.streaming is not None and update.live.streaming.text == WRITING.text


async def undo(front: Front) -> StepUndone:
    """Take the last diff back and return the event that says so."""
    before = await front.until(lambda _: True)
    seen = before.state.seq
    await front.submit(UndoStep())
    after = await front.until(
        lambda it: it.state.run and any(_undone(each.event, each.seq, seen) for each in it.state.run.history)
    )
    assert after.state.run is not None
    return next(each.event for each in reversed(after.state.run.history) if isinstance(each.event, StepUndone))


def _undone(event: Event, seq: int, after: int) -> bool:
    return isinstance(event, StepUndone) and seq > after


async def test_undo_takes_one_diff_after_the_other_back_while_the_model_writes(tmp_path: Path) -> None:
    sayings: list[Saying] = [FIRST, SECOND, WRITING, WRITING, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=ASKED, tasks=ANY) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.DIFF)
        await front.approve(Permission.DIFF)
        await front.until(_writes)
        second = answer(stage).read_text(), await undo(front), answer(stage).read_text()
        assert (second[0], second[2]) == ("second\n", "first\n")
        await front.until(_writes)
        assert "took back the diff of step 2: answer.txt as before it" in told(stage)
        assert "answer.txt:1-1 reads again:\nfirst" in told(stage)
        await undo(front)
        assert answer(stage).read_text() == "wrong\n"
        assert await front.notice(UndoStep()) == "no diff of T-1 is applied"
        await front.approve(Permission.DIFF)
        await front.approve(Permission.COMMIT)
        await front.gate(Permission.MERGE)
        assert stage.git("show", "agent/T-1:answer.txt") == "right"
        stopped = [event for event in stage.events if isinstance(event, ModelInterrupted)]
        assert [event.cause for event in stopped] == [InterruptCause.STOPPED] * 2
        assert "its commit is on its own branch" in await front.notice(UndoStep())
        kept = {
            stage.git("show", f"{ref}:answer.txt")
            for ref in stage.git("for-each-ref", "--format=%(refname)", f"refs/agent/{SESSION}/").split()
        }
        assert kept == {"wrong", "first", "second", "right"}, "nothing that was undone is lost"


async def test_what_waits_is_refused_and_what_was_checked_is_checked_again(tmp_path: Path) -> None:
    sayings: list[Saying] = [FIRST, SECOND, FINISH, SECOND, FINISH, FINISH]
    async with a_stage(tmp_path, sayings, approvals=ASKED, tasks=ANY) as stage, in_front_of(stage) as front:
        await front.start()
        first = await front.approve(Permission.DIFF)
        second = await front.approve(Permission.DIFF)
        commit = await front.gate(Permission.COMMIT)
        assert "another diff" in await front.notice(UndoStep(first.id))
        await front.submit(UndoStep(second.id))
        third = await front.gate(Permission.DIFF)
        refused = only(stage.events, lambda it: isinstance(it, ActionDecided) and it.proposal_id == commit.id)
        assert isinstance(refused, ActionDecided)
        assert (refused.verdict, refused.reason) == (Verdict.REJECT, MADE_ON_OTHERS)
        assert third.diff == second.diff, "the user may have thought better of it"
        before = checks_run(stage)
        await undo(front)
        assert answer(stage).read_text() == "wrong\n"
        assert third.id in {event.proposal_id for event in stage.events if isinstance(event, ActionDecided)}
        assert checks_run(stage) == before
        await front.approve(Permission.FINISH)
        update = await front.over()
        assert checks_run(stage) == before + 1, "the final checks, as what was checked is not there any more"
        assert update.state.run is not None
        assert not update.state.run.changed


async def test_a_command_that_runs_is_stopped_first_and_a_hand_made_change_is_kept(tmp_path: Path) -> None:
    settings = Settings(tools_allowed=("run_command", "write_diff", "finish"))
    sayings: list[Saying] = [FIRST, call("run_command", '{"command": "echo begun; sleep 60"}'), WRITING]
    stage_of = a_stage(tmp_path, sayings, settings=settings, approvals=OPEN, tasks=ANY)
    async with stage_of as stage, in_front_of(stage) as front:
        await front.start()
        await front.until(lambda it: it.live.running and "begun" in it.live.running.tail)
        await undo(front)
        ended = [event for event in stage.events if isinstance(event, ActionFinished)][-1]
        assert ended.result is ActionResult.UNKNOWN
        assert answer(stage).read_text() == "wrong\n"
        await front.until(_writes)
        assert "The user took a diff back while that ran; what came of it is unknown" in told(stage)


async def test_what_the_user_wrote_into_the_workspace_is_kept_before_it_goes(tmp_path: Path) -> None:
    stage_of = a_stage(tmp_path, [FIRST, WRITING, FIRST, WRITING], approvals=OPEN, tasks=ANY)
    async with stage_of as stage, in_front_of(stage) as front:
        await front.start()
        await front.until(_writes)
        answer(stage).write_text("by hand\n")
        await undo(front)
        assert answer(stage).read_text() == "wrong\n"
        await front.until(_writes)
        assert "the user took it back after it was applied" in told(stage), (
            "where nobody is asked, it is not made again"
        )
        taken = [event.checkpoint for event in stage.events if isinstance(event, CheckpointTaken)]
        assert "by hand" in [stage.git("show", f"{each.commit}:answer.txt") for each in taken]


async def test_a_kill_anywhere_in_an_undo_leaves_it_to_be_done(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [FIRST], approvals=OPEN, tasks=ANY, headless=True) as stage:
        await run_until_killed(stage, TestsFinished, 2)
        kills = ((UndoAsked, False), (CheckpointTaken, True), (CheckpointTaken, False), (StepUndone, True))
        for kind, before in kills:
            async with reopened(stage) as again:
                if isinstance(move := next_move(again.state), Recover) and kind is not UndoAsked:
                    await perform(again.session, move)
                kill_at(again, kind, before=before)
                doing = (
                    ask_undo(again.session, None)
                    if kind is UndoAsked
                    else perform(again.session, Undo(the_diff(again)))
                )
                with pytest.raises(Killed):
                    await doing
        async with reopened(stage, [change("wrong", "right"), FINISH]) as last:
            ending = await run_unattended(last.session, last.recorder, (T1,))
            assert ending.exit_code is ExitCode.DONE, ending
            assert "took back the diff of step 1" in last.model.requests[0].messages[-1].text
        assert sum(isinstance(event, StepUndone) for event in stage.events) == 1
        assert stage.git("show", "agent/T-1:answer.txt") == "right"


def test_the_lines_before_a_diff_are_shown_with_their_numbers() -> None:
    diff = "--- a/one.py\n+++ b/one.py\n@@ -3,2 +3,2 @@\n a\n-b\n+c\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n"
    assert [(chunk.place, chunk.text) for chunk in lines_before(parse_patch(diff))] == [("one.py:3-4", "a\nb")]
