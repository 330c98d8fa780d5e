"""A workspace from opening to release, the user's checkout untouched."""

import asyncio
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.adapters.git.user import SESSION, User

pytestmark = pytest.mark.usefixtures("untouched")


@pytest.fixture
async def workspace(user: User, repository: Repository) -> GitWorkspace:
    return await repository.open(user.request())


def at(workspace: GitWorkspace, path: str) -> Path:
    return Path(workspace.facts.path) / path


def text(content: str) -> FileContent:
    return FileContent(content.encode())


async def test_a_new_workspace_holds_the_files_of_its_base(user: User, workspace: GitWorkspace) -> None:
    assert await workspace.list_files() == ("README.md", "src/app.py")
    assert await workspace.read("src/app.py") == text("print('hello')\n")
    assert workspace.facts.base == user.head()
    assert workspace.facts.tree == user.git("rev-parse", "HEAD^{tree}")
    assert not workspace.facts.rebuilt
    assert not Path(workspace.facts.path).is_relative_to(user.root)
    status = subprocess.run(["git", "status", "--porcelain"], cwd=workspace.facts.path, capture_output=True, check=True)
    assert status.stdout == b""


async def test_a_change_is_written_committed_and_clean(user: User, workspace: GitWorkspace) -> None:
    changes = [
        FileChange("src/app.py", text("print('hello')\n"), text("print('bye')\n")),
        FileChange("src/new/tool", None, FileContent(b"#!/bin/sh\n", executable=True)),
        FileChange("README.md", text("# Hello\n"), None),
    ]
    tree = await workspace.write(changes, workspace.facts.tree)
    assert await workspace.unapproved_changes(tree) == ()
    assert {change.path for change in await workspace.changes(tree)} == {"src/app.py", "src/new/tool", "README.md"}
    commit = await workspace.commit(tree, "[Agent] Complete T-1: bye\n\nAgent-Journal: x:1:y")
    assert user.git("rev-parse", "agent/T-1") == commit
    assert user.git("show", "--no-patch", "--format=%an <%ae>|%cn|%P", commit) == (
        f"Ada Lovelace <ada@example.org>|Ada Lovelace|{workspace.facts.base}"
    )
    assert (
        user.git("ls-tree", "-r", "--format=%(objectmode) %(path)", commit) == "100644 src/app.py\n100755 src/new/tool"
    )
    status = subprocess.run(["git", "status", "--porcelain"], cwd=workspace.facts.path, capture_output=True, check=True)
    assert status.stdout == b""


async def test_a_checkpoint_is_restored_to_the_byte(user: User, workspace: GitWorkspace) -> None:
    at(workspace, "src/app.py").write_bytes(b"\xff\x00\r\n")
    at(workspace, "made by a test").write_text("x")
    at(workspace, "link").symlink_to("../over/there//x")
    first = await workspace.checkpoint(SESSION, 7, "step 1\n\njournal: abc")
    assert user.git("rev-parse", first.ref) == first.commit
    assert user.git("log", "-1", "--format=%B", first.commit).strip() == "step 1\n\njournal: abc"
    at(workspace, "src/app.py").unlink()
    at(workspace, "src").rmdir()
    at(workspace, "src").write_text("a file now")
    at(workspace, "link").unlink()
    at(workspace, "link").mkdir()
    at(workspace, "link/extra").write_text("x")
    second = await workspace.checkpoint(SESSION, 9, "step 2")
    assert user.git("rev-parse", f"{second.commit}^") == first.commit
    await workspace.restore(first.commit)
    assert await workspace.read("src/app.py") == FileContent(b"\xff\x00\r\n")
    target = os.readlink(at(workspace, "link"))  # noqa: PTH115 - pathlib would tidy it
    assert target == "../over/there//x"
    assert await workspace.list_files() == ("README.md", "link", "made by a test", "src/app.py")
    await workspace.restore(second.commit)
    assert await workspace.list_files() == ("README.md", "link/extra", "made by a test", "src")
    await workspace.restore(workspace.facts.base)
    assert await workspace.list_files() == ("README.md", "src/app.py")
    assert not at(workspace, "link").exists()


async def test_strays_are_shown_and_put_back(workspace: GitWorkspace) -> None:
    at(workspace, "src/app.py").write_text("changed")
    at(workspace, "README.md").unlink()
    at(workspace, "a/b").mkdir(parents=True)
    at(workspace, "a/b/new").write_text("new")
    tree = workspace.facts.tree
    assert await workspace.unapproved_changes(tree) == (
        FileChange("README.md", text("# Hello\n"), None),
        FileChange("a/b/new", None, text("new")),
        FileChange("src/app.py", text("print('hello')\n"), text("changed")),
    )
    await workspace.put_back(tree, ["README.md", "a/b/new"])
    assert [change.path for change in await workspace.unapproved_changes(tree)] == ["src/app.py"]
    assert not at(workspace, "a").exists()
    await workspace.put_back(tree, ["src/app.py"])
    assert await workspace.unapproved_changes(tree) == ()


async def test_release_leaves_nothing_of_an_idle_workspace(user: User, workspace: GitWorkspace) -> None:
    await workspace.release(keep=False)
    assert not Path(workspace.facts.path).exists()
    assert user.git("for-each-ref", "refs/heads/agent") == ""
    assert "agent-T-1" not in user.git("worktree", "list")


async def test_a_release_that_is_given_up_lets_go_all_the_same(
    user: User, repository: Repository, workspace: GitWorkspace
) -> None:
    go, only = threading.Event(), ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(only)
    only.submit(go.wait)
    releasing = asyncio.create_task(workspace.release(keep=True))
    for _ in range(3):
        await asyncio.sleep(0)
    releasing.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await releasing
    again = await repository.open(user.request())
    assert again.facts.branch == workspace.facts.branch


async def test_release_keeps_a_branch_with_a_commit(user: User, workspace: GitWorkspace) -> None:
    tree = await workspace.write([FileChange("new", None, text("x"))], workspace.facts.tree)
    commit = await workspace.commit(tree, "Add new")
    await workspace.release(keep=False)
    assert user.git("rev-parse", "agent/T-1") == commit


async def test_a_moved_preimage_is_refused_and_nothing_written(workspace: GitWorkspace) -> None:
    at(workspace, "README.md").write_text("edited meanwhile")
    changes = [
        FileChange("src/app.py", text("print('hello')\n"), text("1")),
        FileChange("README.md", text("# Hello\n"), text("2")),
    ]
    with pytest.raises(WorkspaceError, match=r"README\.md changed"):
        await workspace.write(changes, workspace.facts.tree)
    assert await workspace.read("src/app.py") == text("print('hello')\n")
