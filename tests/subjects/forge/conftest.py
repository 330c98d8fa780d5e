from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from agent_workbench.core.settings.worker import ForgeSettings
from agent_workbench.subjects.forge.client_adapter import ForgeApi
from agent_workbench.subjects.forge.gitea_adapter import GiteaForge
from agent_workbench.subjects.forge.github_adapter import GithubForge
from tests.adapters.git.user import User, make_home, make_repo
from tests.fakes.forge_server import REPO, TOKEN, ForgeServer, bare_remote
from tests.fakes.gitea_server import GiteaServer, gitea_server
from tests.fakes.github_server import GithubServer, github_server
from tests.subjects.forge.scene import Scene, make_scene

SERVERS: dict[str, Callable[[Path], AbstractContextManager[ForgeServer]]] = {
    "gitea": gitea_server,
    "github": github_server,
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(make_home(tmp_path / "home")))
    for name in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


@pytest.fixture
def user(tmp_path: Path, home: None) -> User:
    return make_repo(tmp_path / "repo")


@pytest.fixture(params=SERVERS)
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ForgeServer]:
    with SERVERS[request.param](bare_remote(tmp_path / "remote.git")) as server:
        yield server


@pytest.fixture
async def scene(user: User, server: ForgeServer) -> Scene:
    return await make_scene(user, server)


@pytest.fixture
def gitea() -> Iterator[GiteaServer]:
    with gitea_server() as server:
        yield server


@pytest.fixture
async def forge(gitea: GiteaServer) -> AsyncIterator[GiteaForge]:
    settings = ForgeSettings(url=gitea.url, repo=REPO, users=("ada", "Bob"))
    forge = GiteaForge(ForgeApi(gitea.url, TOKEN, seconds=5.0), settings)
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
