"""Consultations of a live session: beside a gate, stopped, and required before a commit."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.consult_requests import PROTOCOLS
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.events import ConsultantAnswered, ConsultantAsked, ConsultStatus, SessionLeft
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import AskConsultant, StopConsultation
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.plan import Constraints, TaskStatus
from agent_workbench.core.settings import Approval, Approvals, Limits, Permission, Settings
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.consultations import review_notes, view_advice
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, change, task
from tests.fakes.ports import Hang, Saying

RIGHT = change("wrong", "right")
SKILLS = {PROTOCOLS: "NO JSON.", **{f"consult-{name}": name for name in ("review", "debug", "spec")}}
ONLY_DIFF = Approvals(check=Approval.AUTO, commit=Approval.AUTO, command=Approval.AUTO)
CRITICAL = "CRITICAL answer.txt:1 - wrong word\n\n1 critical, 0 warnings, 0 suggestions"
REVIEWED = Settings(limits=Limits(review=True))


def answers(stage: Stage) -> list[ConsultantAnswered]:
    """Return the answers in the journal."""
    return [each for each in stage.events if isinstance(each, ConsultantAnswered)]


async def test_the_waiting_diff_is_reviewed_and_still_waits(tmp_path: Path) -> None:
    sayings: list[Saying] = [RIGHT, CRITICAL, FINISH]
    async with a_stage(tmp_path, sayings, approvals=ONLY_DIFF, skills=SKILLS) as stage, in_front_of(stage) as front:
        await front.start()
        waiting = await front.gate(Permission.DIFF)
        assert isinstance(await front.outcome(AskConsultant("review", waiting.id)), Accepted)
        assert stage.state.waiting == waiting
        asked = stage.model.requests[1].messages[1].text
        assert "    1 | right" in asked
        assert "    -wrong" in asked
        advice = view_advice(SessionUpdate(stage.state))
        assert advice.title == "review: 1 critical, 0 warnings, 0 suggestions"
        assert [each.place.line for each in advice.entries if each.place] == [1]
        assert isinstance(await front.outcome(AskConsultant("review", ProposalId("P-0"))), Refused)
        assert isinstance(await front.outcome(AskConsultant("debug")), Accepted | Refused)
        assert stage.read_back() == stage.state


async def test_a_consultation_is_stopped_and_leaves_nothing_open(tmp_path: Path) -> None:
    sayings: list[Saying] = [RIGHT, Hang("I read", dollars=0.5), Hang("again")]
    async with a_stage(tmp_path, sayings, approvals=ONLY_DIFF, skills=SKILLS) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            waiting = await front.gate(Permission.DIFF)
            asking = asyncio.ensure_future(front.outcome(AskConsultant("review", waiting.id)))
            await front.until(lambda update: bool(update.live.consulting and update.live.consulting.streaming.dollars))
            await front.submit(StopConsultation())
            assert isinstance(await asking, Refused)
            assert [each.status for each in answers(stage)] == [ConsultStatus.STOPPED]
            assert stage.state.run is not None
            assert stage.state.run.dollars == pytest.approx(0.5)
            await front.until(lambda update: update.live.consulting is None)
            await front.submit(AskConsultant("review", waiting.id))
            await front.until(lambda update: bool(update.live.consulting and update.live.consulting.streaming.text))
        assert isinstance(stage.events[-1], SessionLeft)
        assert [each.status for each in answers(stage)] == [ConsultStatus.STOPPED] * 2


@pytest.mark.parametrize("by_task", [True, False])
async def test_a_commit_waits_for_its_review_and_shows_the_count(tmp_path: Path, *, by_task: bool) -> None:
    own = replace(task(), constraints=Constraints(review=True)) if by_task else task()
    settings = Settings() if by_task else REVIEWED
    approvals = replace(OPEN, commit=Approval.ASK)
    sayings: list[Saying] = [RIGHT, FINISH, CRITICAL]
    async with (
        a_stage(tmp_path, sayings, tasks=(own,), settings=settings, approvals=approvals, skills=SKILLS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        commit = await front.gate(Permission.COMMIT)
        (note,) = review_notes(stage.state, commit)
        assert note.text == "Review: 1 critical, 0 warnings, 0 suggestions"
        assert len(answers(stage)) == 1
        await front.approve(Permission.COMMIT)


@pytest.mark.parametrize("review", [ModelUnavailable("gone"), "", "Clean — no issues found"])
async def test_a_review_that_fails_keeps_nothing_back(tmp_path: Path, review: Saying) -> None:
    sayings: list[Saying] = [RIGHT, FINISH, review]
    async with a_stage(tmp_path, sayings, settings=REVIEWED, approvals=OPEN, skills=SKILLS, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        assert stage.state.run is not None
        assert stage.state.run.status is TaskStatus.DONE
        assert len(answers(stage)) == 1


async def test_a_missing_discipline_is_told_once(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [RIGHT, FINISH], settings=REVIEWED, approvals=OPEN, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        (asked,) = [each for each in stage.events if isinstance(each, ConsultantAsked)]
        assert asked.task == ""
        assert "consult-protocols" in answers(stage)[0].reason or "consult-review" in answers(stage)[0].reason
        assert stage.state.run is not None
        assert stage.state.run.status is TaskStatus.DONE
