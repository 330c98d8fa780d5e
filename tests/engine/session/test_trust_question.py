"""The trust question with the user's real store: a yes is remembered, for exactly what was shown."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_workbench.config.settings_loader import load_settings
from agent_workbench.config.trust_store import RepoTrust, TrustStore
from agent_workbench.core.intents import AnswerQuestion
from agent_workbench.core.ports.repo_files import Trust
from tests.engine.session.test_preflight import Repo, asked, at, ended, preflight_in


@dataclass
class TrustedRepo(Repo):
    """A repo whose trust is the real one."""

    real: Trust | None = None

    async def trust(self) -> Trust:
        assert self.real is not None
        return self.real


@pytest.mark.parametrize("yes", [True, False])
async def test_a_yes_stands_in_the_store_and_is_not_asked_again(tmp_path: Path, *, yes: bool) -> None:
    root, store = tmp_path / "repo", TrustStore(tmp_path / "state")
    root.mkdir()
    settings = root / ".agent.yml"
    settings.write_text("test_command: make test\n")

    async def trust() -> RepoTrust:
        return await asyncio.to_thread(lambda: RepoTrust(root, load_settings(root, {}, {}), store))

    first = TrustedRepo(real=await trust())
    async with preflight_in(at(first)) as (_, front):
        question = (await asked(front, "trust")).live.question
        assert question is not None
        assert any("make test" in line for line in question.lines)
        await front.submit(AnswerQuestion("trust", yes))
        await ended(front)
    assert first.met == ["opened trusted" if yes else "opened untrusted", "lived"]
    assert bool(await (await trust()).question()) is not yes
    if not yes:
        return
    second = TrustedRepo(real=await trust())
    async with preflight_in(at(second)) as (_, front):
        await ended(front)
    assert second.met == ["opened trusted", "lived"]
    settings.write_text("test_command: make something else\n")
    assert any("something else" in line for line in await (await trust()).question())
