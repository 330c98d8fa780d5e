from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.adapters.git.user import User, make_home, make_repo
from tests.fakes.forge_server import ForgeServer, bare_remote
from tests.fakes.gitea_server import gitea_server
from tests.fakes.github_server import github_server
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
