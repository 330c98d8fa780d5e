import subprocess
from pathlib import Path

import pytest

from tests.adapters.git.remote.machines import Journal, Machine, Remote, clone
from tests.adapters.git.user import GIT, User


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
