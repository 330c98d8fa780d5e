from pathlib import Path

from agent_workbench.core.events import PromptBuilt
from agent_workbench.core.model import Purpose, Sampling
from agent_workbench.core.settings import Limits, ReflexionTiming, Settings
from agent_workbench.core.settings.models import RoleSampling, SamplingSettings
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.stage import FINISH, OPEN, a_stage, call, change, reflexion

SAYINGS = [change("wrong", "rigth"), reflexion(), change("rigth", "right"), FINISH]


async def test_each_role_is_sampled_as_its_settings_say_and_its_seeds_are_recorded(tmp_path: Path) -> None:
    settings = Settings(
        sampling=SamplingSettings(
            temperature=0.9, executor=RoleSampling(temperature=0.1, seed=7), reflexion=RoleSampling(top_k=5)
        )
    )
    async with a_stage(tmp_path, SAYINGS, settings=settings, approvals=OPEN, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, None)
        built = [event for event in stage.events if isinstance(event, PromptBuilt)]
        sent = stage.model.requests
    sampled = [(request.purpose, request.sampling) for request in sent]
    assert sampled == [
        (Purpose.EXECUTOR, Sampling(temperature=0.1)),
        (Purpose.REFLEXION, Sampling(temperature=0.9, top_k=5)),
        (Purpose.EXECUTOR, Sampling(temperature=0.6)),
        (Purpose.EXECUTOR, Sampling(temperature=0.1)),
    ]
    assert [event.sampling for event in built] == [sampling for _, sampling in sampled]
    assert [event.seed for event in built] == [request.seed for request in sent]
    assert {event.seed for event in built if event.purpose is Purpose.EXECUTOR} == {7}
    assert not {event.seed for event in built if event.purpose is Purpose.REFLEXION} & {0, 7}


async def test_without_a_seed_each_prompt_has_its_own(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, approvals=OPEN, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, None)
        seeds = [request.seed for request in stage.model.requests]
    assert len(set(seeds)) == len(seeds) == 4


async def test_a_retry_is_sampled_warmer_until_the_checks_pass_and_a_read_between_changes_nothing(
    tmp_path: Path,
) -> None:
    sayings = [change("wrong", "rigth"), call("list_files"), "no step", change("rigth", "right"), FINISH]
    settings = Settings(limits=Limits(reflexion=ReflexionTiming.NEVER))
    async with a_stage(tmp_path, sayings, settings=settings, approvals=OPEN, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, None)
        warm = [request.sampling.temperature for request in stage.model.requests]
    assert warm == [0.2, 0.7, 0.7, 0.8, 0.2]


def test_the_temperature_is_bounded_and_a_model_that_thinks_keeps_its_servers() -> None:
    assert [RoleSampling().sampling(failed).temperature for failed in (0, 1, 9)] == [0.2, 0.7, 0.8]
    assert [RoleSampling(1.3).sampling(failed).temperature for failed in (0, 4)] == [1.3, 1.3]
    assert RoleSampling(0, retry_temperature=0).sampling(5).temperature == 0
    assert RoleSampling(top_k=5).sampling(5, thinks=True) == Sampling(top_k=5, thinking_budget_tokens=2048)
    assert RoleSampling(thinking_tokens=99).sampling().thinking_budget_tokens is None
    assert RoleSampling(0.6).sampling(thinks=True).temperature == 0.6
