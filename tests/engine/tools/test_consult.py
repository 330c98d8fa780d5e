"""The tool `consult` in a task: an observation, counted into the budget, and never an answer of the task."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.consult_requests import PROTOCOLS
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.events import ActionFinished, ActionRejected, ConsultantAnswered, ModelAnswered
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.settings import DEFAULT_TOOLS, Settings
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.stage import FINISH, OPEN, T1, a_stage, call, change
from tests.fakes.ports import Saying

ASK = call("consult", '{"consultant": "review", "question": "is it right?", "files": "answer.txt"}')
SKILLS = {PROTOCOLS: "NO JSON.", "consult-review": "review", "consult-tdd": "tdd", "consult-debug": "debug"}
WITH_IT = Settings(tools_allowed=(*DEFAULT_TOOLS, "consult"))
STEP = "Thought: done\nAction: finish\n{}\n<|im_end|>"


async def test_a_consultation_is_an_observation_and_costs(tmp_path: Path) -> None:
    sayings: list[Saying] = [ASK, STEP, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, settings=WITH_IT, approvals=OPEN, skills=SKILLS, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        finished = [each for each in stage.events if isinstance(each, ActionFinished)]
        observed = next(each.observation for each in finished if "review answered" in each.observation)
        assert "Action: finish" in observed
        assert "<|im_end|>" not in observed
        (answered,) = [each for each in stage.events if isinstance(each, ConsultantAnswered)]
        run = stage.read_back().run
        assert run is not None
        assert run.status is TaskStatus.DONE
        assert answered.tokens > 0
        steps = sum(
            each.figures.prompt_tokens + each.figures.answer_tokens
            for each in stage.events
            if isinstance(each, ModelAnswered)
        )
        assert run.tokens == steps + answered.tokens
        assert "    1 | wrong" in stage.model.requests[1].messages[1].text


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ('{"consultant": "trainer"}', "trainer"),
        ('{"consultant": "review"}', "review needs files"),
        ('{"consultant": "tdd_refactor", "files": "answer.txt"}', "tdd_refactor needs impl_path"),
        ('{"consultant": "debug"}', "debug needs error"),
    ],
)
async def test_a_question_that_does_not_fit_is_sent_back(tmp_path: Path, arguments: str, why: str) -> None:
    sayings: list[Saying] = [call("consult", arguments), change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, settings=WITH_IT, approvals=OPEN, skills=SKILLS, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        (rejected,) = [each for each in stage.events if isinstance(each, ActionRejected)]
        assert why in rejected.reason


async def test_no_answer_is_a_failed_call(tmp_path: Path) -> None:
    sayings: list[Saying] = [ASK, ModelUnavailable("gone"), change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, settings=WITH_IT, approvals=OPEN, skills=SKILLS, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        observed = [each.observation for each in stage.events if isinstance(each, ActionFinished)]
        assert any("the consultant did not answer" in each for each in observed)


async def test_a_file_outside_of_the_scope_is_not_sent(tmp_path: Path) -> None:
    ask = call("consult", '{"consultant": "review", "files": ".env"}')
    sayings: list[Saying] = [ask, change("wrong", "right"), FINISH]
    start = {"answer.txt": "wrong\n", ".env": "KEY=1\n"}
    settings = replace(WITH_IT)
    async with a_stage(
        tmp_path, sayings, settings=settings, approvals=OPEN, skills=SKILLS, headless=True, start=start
    ) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        observed = [each.observation for each in stage.events if isinstance(each, ActionFinished)]
        assert any("holds secrets by its name" in each for each in observed)
