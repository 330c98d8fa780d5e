from collections.abc import AsyncIterator, Iterator

import pytest

from agent_workbench.core.settings.worker import ForgeSettings
from agent_workbench.subjects.forge.adapters.api_client import ForgeApi
from agent_workbench.subjects.forge.adapters.gitea import GiteaForge
from agent_workbench.subjects.forge.adapters.github import GithubForge
from tests.fakes.forge_server import REPO, TOKEN
from tests.fakes.gitea_server import GiteaServer, gitea_server
from tests.fakes.github_server import GithubServer, github_server


@pytest.fixture
def server() -> Iterator[GiteaServer]:
    with gitea_server() as server:
        yield server


@pytest.fixture
async def forge(server: GiteaServer) -> AsyncIterator[GiteaForge]:
    settings = ForgeSettings(url=server.url, repo=REPO, users=("ada", "Bob"))
    forge = GiteaForge(ForgeApi(server.url, TOKEN, seconds=5.0), settings)
    yield forge
    await forge.close()


@pytest.fixture
def github() -> Iterator[GithubServer]:
    with github_server() as server:
        yield server


@pytest.fixture
async def github_forge(github: GithubServer) -> AsyncIterator[GithubForge]:
    forge = GithubForge.at(ForgeSettings(url=github.url, repo=REPO, users=("ada", "Bob", "eve")), TOKEN)
    yield forge
    await forge.close()
