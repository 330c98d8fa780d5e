"""The files of a recorded tree are those a worktree of it would have, wherever the checkout stands now."""

from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import WorkspaceError
from tests.adapters.git.user import User


@pytest.fixture
def user(tmp_path: Path) -> User:
    user = User(tmp_path / "repo")
    user.git("init", "--quiet")
    user.write("a.py", "one\r\ntwo")
    user.write("below/é.txt", "text\n")
    (user.root / "link").symlink_to("a.py")
    user.commit("Start")
    return user


async def test_what_stood_there_is_listed_and_read(user: User, tmp_path: Path) -> None:
    tree = user.git("rev-parse", "HEAD^{tree}").strip()
    user.write("a.py", "changed\n")
    user.write("new.py", "new\n")
    user.commit("Change")
    files = await Repository(user.root, tmp_path / "worktrees").recorded_files(tree)
    assert await files.list_files() == ("a.py", "below/é.txt", "link")
    content = await files.read("a.py")
    assert content is not None
    assert content.data == b"one\r\ntwo"
    assert await files.read("new.py") is None


@pytest.mark.parametrize("path", ["link", "../repo/a.py", "/etc/passwd"])
async def test_what_is_no_file_of_the_tree_is_refused(user: User, tmp_path: Path, path: str) -> None:
    files = await Repository(user.root, tmp_path / "worktrees").recorded_files("HEAD")
    with pytest.raises(WorkspaceError):
        await files.read(path)


async def test_a_tree_that_is_gone_is_said(user: User, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="is not a commit of this repository"):
        await Repository(user.root, tmp_path / "worktrees").recorded_files("1" * 40)
