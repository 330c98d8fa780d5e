from pathlib import Path

from agent_workbench.core.events import PromptBuilt
from agent_workbench.core.model import Purpose, Sampling
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import RoleSampling, SamplingSettings
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.stage import FINISH, OPEN, a_stage, change, reflexion

SAYINGS = [change("wrong", "rigth"), reflexion(), change("rigth", "right"), FINISH]


async def test_each_role_is_sampled_as_its_settings_say_and_its_seeds_are_recorded(tmp_path: Path) -> None:
    settings = Settings(
        sampling=SamplingSettings(
            executor=RoleSampling(temperature=0.1, seed=7), reflexion=RoleSampling(temperature=0.9, top_k=5)
        )
    )
    async with a_stage(tmp_path, SAYINGS, settings=settings, approvals=OPEN, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, None)
        built = [event for event in stage.events if isinstance(event, PromptBuilt)]
        sent = stage.model.requests
    sampled = {request.purpose: request.sampling for request in sent}
    assert sampled == {
        Purpose.EXECUTOR: Sampling(temperature=0.1),
        Purpose.REFLEXION: Sampling(temperature=0.9, top_k=5),
    }
    assert [event.seed for event in built] == [request.seed for request in sent]
    assert {event.seed for event in built if event.purpose is Purpose.EXECUTOR} == {7}
    assert not {event.seed for event in built if event.purpose is Purpose.REFLEXION} & {0, 7}


async def test_without_a_seed_each_prompt_has_its_own(tmp_path: Path) -> None:
    async with a_stage(tmp_path, SAYINGS, approvals=OPEN, headless=True) as stage:
        await run_unattended(stage.session, stage.recorder, None)
        seeds = [request.seed for request in stage.model.requests]
    assert len(set(seeds)) == len(seeds) == 4
