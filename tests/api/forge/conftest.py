from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.git.user import User, make_home, make_repo
from tests.api.forge.scene import Scene, make_scene
from tests.fakes.forge_server import bare_remote
from tests.fakes.gitea_server import GiteaServer, gitea_server


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(make_home(tmp_path / "home")))
    for name in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


@pytest.fixture
def user(tmp_path: Path, home: None) -> User:
    return make_repo(tmp_path / "repo")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GiteaServer]:
    with gitea_server(bare_remote(tmp_path / "remote.git")) as server:
        yield server


@pytest.fixture
async def scene(user: User, server: GiteaServer) -> Scene:
    return await make_scene(user, server)
