"""A commit that is not to count any more is taken off the task's branch, and stays to be found."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.core.ids import CommitId, session_suffix
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.adapters.git.user import SESSION, TASK, User

pytestmark = pytest.mark.usefixtures("untouched")


async def commit_one(workspace: GitWorkspace) -> CommitId:
    new = FileChange("new.txt", None, FileContent(b"new\n"))
    return await workspace.commit(await workspace.write([new], workspace.facts.tree), "[Agent] Complete T-1")


def status_of(workspace: GitWorkspace) -> bytes:
    """Return what git says of the worktree: its branch, and what differs from it."""
    asked = ["git", "status", "--branch", "--porcelain"]
    return subprocess.run(asked, cwd=workspace.facts.path, capture_output=True, check=True).stdout


@pytest.mark.parametrize("rebuilt", [False, True], ids=["found", "rebuilt"])
async def test_our_commit_is_withdrawn_and_kept(user: User, repository: Repository, *, rebuilt: bool) -> None:
    workspace = await repository.open(user.request())
    commit = await commit_one(workspace)
    assert await repository.task_commit(TASK) == commit
    await workspace.release(keep=True)
    if rebuilt:
        shutil.rmtree(workspace.facts.path)
    workspace = await repository.open(user.request())
    await workspace.restore(workspace.facts.base)
    await workspace.withdraw()
    assert not user.git("branch", "--list", "agent/*")
    assert await repository.task_commit(TASK) is None
    assert user.git("rev-parse", f"refs/agent/{SESSION}/withdrawn/{commit[:12]}") == commit
    assert status_of(workspace) == b"## HEAD (no branch)\n"
    await workspace.withdraw()
    assert not user.git("branch", "--list", "agent/*")


async def test_a_branch_that_holds_nothing_goes(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    kept = await workspace.checkpoint(SESSION, 7, "step 1 of T-1")
    await workspace.withdraw()
    assert not user.git("branch", "--list", "agent/*")
    assert user.git("rev-parse", kept.ref) == kept.commit, "attempts stay"
    assert status_of(workspace) == b"## HEAD (no branch)\n", "the worktree stays"
    await workspace.release(keep=True)
    assert await repository.free_branch(TASK, SESSION) == f"agent/{TASK}-{session_suffix(SESSION)}"


async def test_work_that_goes_on_has_its_branch_again(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    await workspace.withdraw()
    await workspace.release(keep=True)
    workspace = await repository.open(user.request())
    commit = await commit_one(workspace)
    assert user.git("rev-parse", "agent/T-1") == commit
    assert status_of(workspace) == b"## agent/T-1\n"


async def test_what_somebody_else_put_there_stays(user: User, repository: Repository) -> None:
    workspace = await repository.open(user.request())
    await commit_one(workspace)
    folder = Path(workspace.facts.path)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "mine"], cwd=folder, check=True)
    theirs = user.git("rev-parse", "agent/T-1")
    await workspace.withdraw()
    assert user.git("rev-parse", "agent/T-1") == theirs
