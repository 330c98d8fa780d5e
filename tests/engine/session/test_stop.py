"""Esc: an answer is cut, a check or a command is ended; the task stays and is paused."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import (
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    ActionStarted,
    Event,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PauseChanged,
    TaskCommitted,
    TaskRolledBack,
    TestsFinished,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import (
    ApproveProposal,
    CompactContext,
    Leave,
    PauseTask,
    SayToModel,
    StopAction,
    StopAnswer,
)
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.proposals import shown_sha
from agent_workbench.core.settings import Approval, Approvals, Permission, SandboxSettings, Settings
from agent_workbench.core.state.session_state import Phase
from agent_workbench.engine.flow import AwaitGo, next_move
from agent_workbench.engine.recorder import Recorder
from agent_workbench.engine.runtime.stoppable import StoppableCall, StoppedByUser
from tests.engine.front import Front, in_front_of
from tests.engine.stage import (
    ANSWER,
    FINISH,
    WRONG_ANSWER,
    Stage,
    a_stage,
    call,
    change,
    hold_worktrees,
    reopened,
    task,
)
from tests.fakes.ports import Hang, Saying

CHECKS_OPEN = Approvals(check=Approval.AUTO)
COMMANDS = Settings(tools_allowed=("run_command", "write_diff", "run_tests", "finish"))
RIGHT = change("wrong", "right")
DEAF = "trap '' TERM INT HUP; echo started; while :; do sleep 0.05; done"
"""A check that ignores every polite request to end."""


def held(update: SessionUpdate) -> bool:
    return isinstance(next_move(update.state), AwaitGo)


def of(stage: Stage, kind: type[Event]) -> list[Event]:
    return [event for event in stage.events if isinstance(event, kind)]


def last_result(stage: Stage) -> ActionFinished:
    finished = [event for event in stage.events if isinstance(event, ActionFinished)]
    return finished[-1]


async def running(front: Front, words: str) -> ProposalId:
    """Wait until a command has said this; return its proposal."""
    update = await front.until(lambda it: it.live.running and words in it.live.running.tail, words)
    assert update.state.run is not None
    assert update.state.run.gate.proposal is not None
    return update.state.run.gate.proposal.id


async def test_an_answer_is_cut_and_words_go_on_with_the_task(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [Hang("Thought: I delete it all"), RIGHT], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
            assert await front.outcome(StopAnswer()) == Accepted()
            await front.until(held, "a pause")
            assert stage.model.streams_ended == 1, "the server is free"
            await front.outcome(SayToModel("keep the README"))
            await front.outcome(SayToModel("and the tests"))
            await front.submit(PauseTask(paused=False))
            await front.gate(Permission.DIFF)
        (cut,) = [event for event in stage.events if isinstance(event, ModelInterrupted)]
        assert (cut.cause, cut.partial) == (InterruptCause.STOPPED, "Thought: I delete it all")
        assert not of(stage, TaskRolledBack)
        told = stage.model.requests[-1].messages[-1].text
        assert "You had begun:\n> Thought: I delete it all\n\nThe user cut that and says:\n> keep the README" in told
        assert "The user says:\n> and the tests" in told
        assert "I delete it all" in told.partition("keep the README")[0], "once"
        assert "I delete it all" not in told.partition("keep the README")[2]


async def test_stops_that_come_fast_pause_once(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
            outcomes = await asyncio.gather(*(front.session.submit(StopAnswer()) for _ in range(3)))
            assert outcomes == [Accepted()] * 3
            await front.until(held, "a pause")
        assert of(stage, PauseChanged) == [PauseChanged(paused=True)]
        assert len(of(stage, ModelInterrupted)) == 1


async def test_an_answer_that_had_ended_is_not_stopped_but_waits(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT], approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.DIFF)
        assert "look at what waits" in await front.notice(StopAnswer())
        await front.gate(Permission.DIFF)
        assert not of(stage, PauseChanged)


async def test_an_answer_is_recorded_with_its_rejection_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop between the two would let an answer through that holds a secret."""
    secret = "hunter2-hunter2-hunter2"
    async with a_stage(
        tmp_path, [change("wrong", secret), RIGHT], approvals=CHECKS_OPEN, secrets={"PASSWORD": secret}
    ) as stage:
        record = Recorder.record
        stopped: list[object] = []

        async with in_front_of(stage) as front:

            async def stops(recorder: Recorder, event: Event, *, after: int | None = None) -> object:
                if isinstance(event, ModelAnswered) and not stopped:
                    stopped.append(front.session.submit(StopAnswer()))
                    await asyncio.sleep(0)
                return await record(recorder, event, after=after)

            monkeypatch.setattr(Recorder, "record", stops)
            await front.start()
            await front.until(held, "a pause")
        kinds = [type(event) for event in stage.events if isinstance(event, ModelAnswered | ActionRejected)]
        assert kinds == [ModelAnswered, ActionRejected]
        assert not of(stage, ModelInterrupted), "it came whole"
        assert not [event for event in stage.events if isinstance(event, ActionProposed) and event.proposal.diff]


@pytest.mark.parametrize("check", [DEAF, "yes flood", "setsid sleep 61 & echo started; wait"])
async def test_a_check_is_ended_counts_as_stopped_and_the_task_stays(tmp_path: Path, check: str) -> None:
    async with a_stage(tmp_path, [RIGHT], tasks=(task(accept=(check,)),), approvals=CHECKS_OPEN) as stage:
        shell = SandboxedShell(SandboxSettings(), str(tmp_path / "repo"), os.environ)
        stage.session.ports = replace(stage.ports, shell=shell)
        async with in_front_of(stage) as front:
            await front.start()
            proposal = await running(front, "started" if "started" in check else "flood")
            assert await front.outcome(StopAction(proposal)) == Accepted()
            state = (await front.until(held, "a pause")).state
            assert state.run is not None
            assert (state.run.failures, state.run.phase) == (0, Phase.STEPPING)
        finished = last_result(stage)
        assert finished.result is ActionResult.STOPPED
        assert finished.observation.startswith("The user stopped this after ")
        assert ("started" if "started" in check else "flood") in finished.observation
        assert not of(stage, TestsFinished)
        assert stage.read_back() == stage.state
        assert not await asyncio.to_thread(survivors, tmp_path), "nothing lives on"


def survivors(folder: Path) -> list[str]:
    """Return the command lines of processes that work below `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


async def test_what_a_stopped_check_wrote_is_put_back(tmp_path: Path) -> None:
    check = f"echo broken > {ANSWER}; echo started; sleep 60"
    async with (
        a_stage(tmp_path, tasks=(task(accept=(check,)),), approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.outcome(StopAction(await running(front, "started")))
        await front.until(held, "a pause")
        workspace = await stage.session.workspace()
        content = await workspace.read(ANSWER)
        assert content is not None
        assert content.data == WRONG_ANSWER[ANSWER].encode()


async def test_what_a_stopped_command_changed_is_a_proposal_of_its_own(tmp_path: Path) -> None:
    said = call("run_command", '{"command": "echo half > answer.txt; echo started; sleep 60"}')
    approvals = replace(CHECKS_OPEN, command=Approval.AUTO)
    async with a_stage(tmp_path, [said], settings=COMMANDS, approvals=approvals) as stage, in_front_of(stage) as front:
        await front.start()
        await front.outcome(StopAction(await running(front, "started")))
        kept = await front.gate(Permission.DIFF)
        assert "+half" in kept.diff
        assert last_result(stage).result is ActionResult.STOPPED


async def test_a_stop_between_the_start_and_the_process_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_stage(tmp_path, approvals=Approvals()) as stage:
        record = Recorder.record
        async with in_front_of(stage) as front:
            await front.start()
            waiting = await front.gate(Permission.CHECK)

            async def stops(recorder: Recorder, event: Event, *, after: int | None = None) -> object:
                recorded = await record(recorder, event, after=after)
                if isinstance(event, ActionStarted):
                    assert await front.session.submit(StopAction(waiting.id)) == Accepted()
                return recorded

            monkeypatch.setattr(Recorder, "record", stops)
            await front.submit(ApproveProposal(waiting.id, shown_sha(waiting)))
            await front.until(held, "a pause")
        assert stage.shell.lines == []
        assert last_result(stage).result is ActionResult.STOPPED


async def test_a_stop_right_after_the_approval_runs_nothing(tmp_path: Path) -> None:
    async with a_stage(tmp_path, approvals=Approvals()) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            waiting = await front.gate(Permission.CHECK)
            approved = front.session.submit(ApproveProposal(waiting.id, shown_sha(waiting)))
            stopped = front.session.submit(StopAction(waiting.id))
            assert [await approved, await stopped] == [Accepted(), Accepted()]
            await front.until(held, "a pause")
        assert stage.shell.lines == []
        assert last_result(stage).result is ActionResult.STOPPED


async def test_a_stop_of_another_action_ends_nothing(tmp_path: Path) -> None:
    """The action that the user saw has ended; the next one was never shown to them."""
    check = "echo started; sleep 0.2"
    async with a_stage(tmp_path, [RIGHT], tasks=(task(accept=(check,)),), approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await running(front, "started")
            assert "had ended before" in await front.notice(StopAction(ProposalId("P-1")))
            await front.until(held, "a pause")
        assert last_result(stage).result is ActionResult.OK


async def test_a_stop_during_the_commit_lets_it_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    approvals = replace(CHECKS_OPEN, diff=Approval.AUTO)
    async with a_stage(tmp_path, [RIGHT, FINISH], approvals=approvals) as stage:
        record = Recorder.record
        said: list[object] = []
        async with in_front_of(stage) as front:
            await front.start()
            waiting = await front.gate(Permission.COMMIT)

            async def stops(recorder: Recorder, event: Event, *, after: int | None = None) -> object:
                recorded = await record(recorder, event, after=after)
                if isinstance(event, ActionStarted) and not said:
                    said.append(await front.session.submit(StopAction(waiting.id)))
                return recorded

            monkeypatch.setattr(Recorder, "record", stops)
            await front.submit(ApproveProposal(waiting.id, shown_sha(waiting)))
            await front.gate(Permission.MERGE)
        assert said == [Refused("a commit is brought to its end; the task pauses after it")]
        assert stage.git("show", "agent/T-1:answer.txt") == "right"


async def test_a_summary_that_is_being_written_is_cut_and_asked_for_again(tmp_path: Path) -> None:
    sayings: list[Saying] = [call("run_tests"), Hang("older steps"), "what was done", RIGHT]
    approvals = Approvals(summary=Approval.AUTO)
    async with a_stage(tmp_path, sayings, settings=COMMANDS, approvals=approvals) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.CHECK)
        await front.gate(Permission.CHECK)
        assert "summarized" in await front.notice(CompactContext())
        await front.approve(Permission.CHECK)
        await front.until(lambda it: it.live.streaming and "older" in it.live.streaming.text, "a summary")
        assert await front.outcome(StopAnswer()) == Accepted()
        run = (await front.until(held, "a pause")).state.run
        assert run is not None
        assert run.phase is Phase.COMPACTING
        await front.submit(PauseTask(paused=False))
        await front.gate(Permission.DIFF)
        assert stage.state.run is not None
        assert stage.state.run.compactions == 1


async def test_the_making_of_a_worktree_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_stage(tmp_path) as stage:
        open_ = stage.ports.workspaces.open
        making = hold_worktrees(stage, monkeypatch)
        async with in_front_of(stage) as front:
            await front.start()
            await making.wait()
            assert await front.outcome(StopAnswer()) == Accepted()
            monkeypatch.setattr(stage.ports.workspaces, "open", open_)
            await front.start()
            await front.gate(Permission.CHECK)


async def test_a_stopped_session_that_is_left_and_opened_again_is_still_paused(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [Hang("Thought: hm")], approvals=CHECKS_OPEN) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
            stopped, left = front.session.submit(StopAnswer()), front.session.submit(Leave())
            assert [await stopped, await left] == [Accepted(), Accepted()]
        async with reopened(stage) as again, in_front_of(again) as front:
            await front.until(held, "a pause")
            assert again.model.requests == []


async def test_final_checks_that_were_stopped_lead_to_no_commit(tmp_path: Path) -> None:
    """Even where a rule would approve it."""
    approvals = Approvals(diff=Approval.AUTO, commit=Approval.AUTO)
    check = task(accept=("echo started; sleep 60",))
    async with a_stage(tmp_path, [RIGHT, FINISH], tasks=(check,), approvals=approvals) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.skip(Permission.CHECK)
            await front.skip(Permission.CHECK)
            final = await front.approve(Permission.CHECK)
            assert final.purpose is CheckPurpose.FINAL
            await front.outcome(StopAction(await running(front, "started")))
            await front.until(held, "a pause")
        assert not of(stage, TaskCommitted)


async def test_a_stop_counts_until_the_call_ends_and_no_longer() -> None:
    calls, one, other = StoppableCall(), ProposalId("P-1"), ProposalId("P-2")
    calls.stop(one)
    with calls.begin(other):
        assert await calls.run(asyncio.sleep(0, "done")) == "done"
    with calls.begin(one), pytest.raises(StoppedByUser):
        await calls.run(asyncio.sleep(0, "never"))
