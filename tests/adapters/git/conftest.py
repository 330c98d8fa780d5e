"""A user with a name and a home of their own, a repository of theirs, and a place for worktrees."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.machines import Journal, Machine, Remote, clone
from tests.adapters.git.user import GIT, User, make_home, make_repo


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with an identity in it, and nothing of the machine's git configuration."""
    folder = make_home(tmp_path / "home")
    for name in [name for name in os.environ if name.startswith("GIT_") or name in {"EMAIL", "XDG_CONFIG_HOME"}]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


@pytest.fixture
def user(tmp_path: Path) -> User:
    """A user in a repository with two files and one commit."""
    return make_repo(tmp_path / "repo")


@pytest.fixture
def worktrees(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def repository(user: User, worktrees: Path) -> Repository:
    return Repository(user.root, worktrees)


@pytest.fixture
def untouched(user: User) -> Iterator[None]:
    """Fail unless the user's repository is at the end what it was at the beginning."""
    before = fingerprint(user.root)
    yield
    assert fingerprint(user.root) == before


@pytest.fixture
def remote(tmp_path: Path, user: User) -> Remote:
    subprocess.run([GIT, "clone", "--quiet", "--bare", str(user.root), str(tmp_path / "remote.git")], check=True)
    return Remote(tmp_path / "remote.git")


@pytest.fixture
def here(tmp_path: Path, remote: Remote) -> Machine:
    return clone(tmp_path, "here", remote.path, ("there",))


@pytest.fixture
def there(tmp_path: Path, remote: Remote) -> Machine:
    return clone(tmp_path, "there", remote.path, ("here",))


@pytest.fixture
def journal() -> Journal:
    return Journal()
