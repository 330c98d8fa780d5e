"""A task without acceptance commands: the model proposes one before it starts, which the user takes or leaves."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.errors import PlanError
from agent_workbench.core.intents import AbortTask, StartTask
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Accepted
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.settings import Approval, Permission, Settings
from agent_workbench.engine.planning.plan_answer import read_check
from tests.engine.front import in_front_of
from tests.engine.stage import ACCEPT, FINISH, OPEN, T1, a_stage, change, kinds, task
from tests.engine.test_executor import run

BARE = (task(accept=()),)
STEPS = (change("wrong", "right"), FINISH)
CHECKED = replace(OPEN, check=Approval.ASK)


def done(update: SessionUpdate) -> bool:
    return any(each.status is TaskStatus.DONE for each in update.state.plan.tasks)


def proposed(proposal: Proposal) -> tuple[str, ...]:
    assert proposal.plan is not None
    assert proposal.plan.checks
    return proposal.plan.taken[0].accept_tests


@pytest.mark.parametrize(
    ("text", "command"),
    [("Accept: pytest -q", "pytest -q"), (" Accept:  `make x: y` \r\n\n", "make x: y")],
)
def test_a_command_is_read(text: str, command: str) -> None:
    assert read_check(text) == command


@pytest.mark.parametrize(
    "text",
    ["", "pytest -q", "Accept: ", "Accept: nothing", "Accept: a\nAccept: b", "Task: x", "Accept: \x1b[2J", "x" * 999],
)
def test_what_is_no_command_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        read_check(text)


async def test_a_check_is_taken_written_and_run_only_when_it_is_approved(tmp_path: Path) -> None:
    sayings = ["run the tests", f"Accept: {ACCEPT}", *STEPS]
    async with a_stage(tmp_path, sayings, approvals=CHECKED, tasks=BARE) as stage, in_front_of(stage) as front:
        told = await front.outcome(StartTask(T1))
        assert told == Accepted("T-1 has no check: the model proposes one first")
        proposal = await front.gate(Permission.PLAN)
        assert proposed(proposal) == (ACCEPT,)
        assert stage.shell.lines == []
        assert stage.plan.plan.task(T1).accept_tests == ()
        await front.approve(Permission.PLAN)
        checks = await front.gate(Permission.CHECK)
        assert checks.commands == (ACCEPT,)
        assert stage.shell.lines == [], "taking it into the plan runs nothing"
        assert stage.plan.plan.task(T1).accept_tests == (ACCEPT,)
        await front.approve(Permission.CHECK)
        await front.approve(Permission.CHECK)
        await front.until(done)
    assert kinds(stage.events).count("PlanRejected") == 1, "the first answer had no command"


async def test_a_check_is_left_and_the_task_starts_without(tmp_path: Path) -> None:
    sayings = ["Accept: rm -rf /", "Accept: curl evil", *STEPS]
    async with a_stage(tmp_path, sayings, approvals=OPEN, tasks=BARE) as stage, in_front_of(stage) as front:
        await front.start()
        await front.reject(Permission.PLAN, "not that")
        assert proposed(await front.gate(Permission.PLAN)) == ("curl evil",)
        assert "The user refused this command: not that" in stage.model.requests[-1].messages[-1].text
        await front.skip(Permission.PLAN)
        await front.until(done)
    assert stage.shell.lines == []
    assert stage.plan.plan.task(T1).accept_tests == ()


async def test_a_question_that_is_stopped_starts_nothing_and_is_asked_once(tmp_path: Path) -> None:
    sayings = ["Accept: make", *STEPS]
    async with a_stage(tmp_path, sayings, approvals=OPEN, tasks=BARE) as stage, in_front_of(stage) as front:
        await front.start()
        await front.gate(Permission.PLAN)
        await front.submit(AbortTask())
        await front.until(lambda it: it.state.waiting is None)
        assert stage.state.run is None
        assert await front.outcome(StartTask(T1)) == Accepted()
        await front.until(done)


@pytest.mark.parametrize("settings", [Settings(test_command=ACCEPT), Settings()])
async def test_nobody_is_asked_where_there_is_a_test_command_or_no_user(tmp_path: Path, settings: Settings) -> None:
    attended = bool(settings.test_command)
    async with a_stage(tmp_path, STEPS, settings=settings, approvals=OPEN, tasks=BARE, headless=not attended) as stage:
        if attended:
            async with in_front_of(stage) as front:
                await front.start()
                await front.until(done)
        else:
            await run(stage)
        assert not [each for each in stage.events if isinstance(each, e.PlanAsked)]
