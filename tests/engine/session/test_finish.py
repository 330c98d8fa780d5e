"""A finish with nothing changed: it goes back to the model once, and after that only a person lets it through."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import (
    ActionDecided,
    ActionRejected,
    ActionStarted,
    StepUndone,
    TaskCommitted,
    TaskFinished,
)
from agent_workbench.core.intents import AbortTask, EditProposal, UndoStep
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposal_kinds import opened_by
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.settings import Approval, Approvals, Limits, Permission, Rule, Settings
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.front import in_front_of
from tests.engine.killing import run_until_killed
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change, diff, only, reopened, task
from tests.fakes.ports import Saying

ANY = (task(accept=("true",)),)
ASKED = Approvals(check=Approval.AUTO)
NO_NEED = call("finish", '{"summary": "the answer was right before"}')


async def run(stage: Stage) -> SessionEnd:
    ending = await run_unattended(stage.session, stage.recorder, (T1,))
    assert stage.read_back() == stage.state
    return ending


def told(stage: Stage) -> str:
    """Return what the model was told last."""
    return stage.model.requests[-1].messages[-1].text


def returned(stage: Stage) -> list[int]:
    """Return the steps that were sent back as a finish with nothing changed."""
    return [event.step for event in stage.events if isinstance(event, ActionRejected) and event.empty_finish]


@pytest.mark.parametrize("accept", [("true",), ()])
async def test_the_first_goes_back_and_the_second_is_parked(tmp_path: Path, accept: tuple[str, ...]) -> None:
    tasks = (task(accept=accept),)
    async with a_stage(tmp_path, [FINISH, NO_NEED], tasks=tasks, approvals=OPEN, headless=True) as stage:
        ending = await run(stage)
        waiting = stage.state.run.gate.waiting if stage.state.run else None
        assert waiting is not None
        assert (ending.exit_code, ending.reason) == (ExitCode.PARKED, f"T-1 waits for a person: finish {waiting.id}")
        assert waiting.described == "finish with nothing changed: the answer was right before"
        assert returned(stage) == [1]
        assert "That step was not taken: finish: nothing is changed" in told(stage)
        assert stage.plan.plan.task(T1).status is not TaskStatus.DONE
        assert not [event for event in stage.events if isinstance(event, TaskFinished)]
        assert {again.difference for again in rerun(stage.journal())} == {None}


def test_yes_opens_no_finish() -> None:
    assert not {"approvals.finish", "approvals.merge"}.intersection(opened_by("--yes"))


async def test_a_person_lets_it_through(tmp_path: Path) -> None:
    sayings: list[Saying] = [FINISH, NO_NEED]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        proposal = await front.gate(Permission.FINISH)
        assert "cannot be edited" in await front.notice(EditProposal(proposal.id, "done"))
        await front.approve(Permission.FINISH)
        update = await front.over()
        assert update.state.run is not None
        assert (update.state.run.status, update.state.run.commit) == (TaskStatus.DONE, None)
        assert update.state.run.reason == "nothing was changed, and its checks pass"
        assert f"(nothing was changed, session {update.state.session})" in update.state.scratchpad(T1)
        decided = [event for event in stage.events if isinstance(event, ActionDecided)][-1]
        assert (decided.verdict, decided.by) == (Verdict.APPROVE, "user")


async def test_a_person_sends_it_back_with_a_reason(tmp_path: Path) -> None:
    sayings: list[Saying] = [FINISH, NO_NEED, NO_NEED, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        await front.reject(Permission.FINISH, "it is not right yet")
        again = await front.reject(Permission.FINISH, "look at answer.txt")
        assert again.text == "the answer was right before"
        await front.approve(Permission.DIFF)
        await front.approve(Permission.COMMIT)
        assert returned(stage) == [1], "it goes back by itself only once"
        said = [request.messages[-1].text for request in stage.model.requests]
        assert "The user rejected that: it is not right yet" in said[2]
        assert "The user rejected that: look at answer.txt" in said[3]


async def test_a_person_gives_the_task_up(tmp_path: Path) -> None:
    sayings: list[Saying] = [FINISH, FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.FINISH)
        await front.submit(AbortTask())
        update = await front.over()
        assert update.state.run is not None
        assert update.state.run.status is TaskStatus.FAILED


async def test_what_was_parked_is_decided_later(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [FINISH, NO_NEED], tasks=ANY, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.PARKED
        async with reopened(stage) as again:
            assert (await run(again)).exit_code is ExitCode.PARKED, "a second run decides it no more than the first"
        stage.headless = False
        async with reopened(stage) as again, in_front_of(again) as front:
            await front.approve(Permission.FINISH)
            update = await front.over()
            assert update.state.run is not None
            assert update.state.run.status is TaskStatus.DONE


async def test_a_stop_while_it_ends_asks_again(tmp_path: Path) -> None:
    opened = replace(OPEN, finish=Approval.AUTO)
    async with a_stage(tmp_path, [FINISH, NO_NEED], tasks=ANY, approvals=opened, headless=True) as stage:
        await run_until_killed(stage, ActionStarted, 4)
        running = stage.state.run.gate.proposal if stage.state.run else None
        assert running is not None
        assert running.kind is Permission.FINISH
        stage.settings = replace(stage.settings, approvals=OPEN)
        async with reopened(stage) as again:
            assert (await run(again)).exit_code is ExitCode.PARKED


@pytest.mark.parametrize("kind", ["policy", "rule"])
async def test_the_policy_may_open_it(tmp_path: Path, kind: str) -> None:
    rules = (Rule(Permission.FINISH, any=True),) if kind == "rule" else ()
    opened = replace(OPEN, finish=Approval.ASK if rules else Approval.AUTO, rules=rules)
    async with a_stage(tmp_path, [FINISH, NO_NEED], tasks=ANY, approvals=opened, headless=True) as stage:
        ending = await run(stage)
        assert (ending.exit_code, ending.reason) == (
            ExitCode.DONE,
            "T-1 done: nothing was changed, and its checks pass",
        )
        decided = [event for event in stage.events if isinstance(event, ActionDecided)][-1]
        assert not stage.git("branch", "--list", "agent/*")
        note = (stage.user.root / "memory/scratch/T-1.md").read_text()
        assert note.endswith(f" (nothing was changed, session {stage.state.session})\n"), "the branch is gone"
        assert decided.by == ("policy:any finish" if rules else "policy:finish=auto")
        assert not [event for event in stage.events if isinstance(event, TaskCommitted)]


async def test_the_policy_may_shut_it(tmp_path: Path) -> None:
    shut = replace(OPEN, finish=Approval.DENY)
    sayings = [FINISH, NO_NEED, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=shut, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.DONE
        said = [request.messages[-1].text for request in stage.model.requests]
        assert "The policy rejected that: the policy does not allow this (finish: deny)" in said[2]


async def test_a_diff_that_was_taken_back_is_none(tmp_path: Path) -> None:
    sayings: list[Saying] = [change("wrong", "right"), FINISH, FINISH, NO_NEED]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.DIFF)
        await front.gate(Permission.COMMIT)
        await front.submit(UndoStep())
        await front.gate(Permission.FINISH)
        only(stage.events, lambda it: isinstance(it, StepUndone))
        assert returned(stage) == [3]
        assert "step 1, diff of answer.txt: the user took it back" in told(stage)


async def test_a_diff_that_was_rejected_is_none(tmp_path: Path) -> None:
    sayings: list[Saying] = [change("wrong", "right"), FINISH, NO_NEED]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=ASKED) as stage, in_front_of(stage) as front:
        await front.start()
        await front.reject(Permission.DIFF, "too short")
        await front.gate(Permission.FINISH)
        assert "step 1, diff of answer.txt: the user rejected it: too short" in told(stage)


async def test_diffs_that_come_to_nothing_are_none(tmp_path: Path) -> None:
    back = call("write_diff", diff("right", "wrong"))
    sayings = [change("wrong", "right"), back, FINISH, NO_NEED]
    async with a_stage(tmp_path, sayings, tasks=ANY, approvals=OPEN, headless=True) as stage:
        assert (await run(stage)).exit_code is ExitCode.PARKED
        assert returned(stage) == [3]


async def test_it_is_no_failed_step(tmp_path: Path) -> None:
    settings = Settings(limits=Limits(consecutive_failure_threshold=1))
    sayings = [FINISH, NO_NEED]
    stage_of = a_stage(tmp_path, sayings, tasks=ANY, settings=settings, approvals=OPEN, headless=True)
    async with stage_of as stage:
        assert (await run(stage)).exit_code is ExitCode.PARKED
        assert stage.state.run is not None
        assert stage.state.run.failures == 0
