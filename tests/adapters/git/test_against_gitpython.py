"""What we read of a repository and write into it is what GitPython, written by others, reads."""

import os
import random
from pathlib import Path

import git
import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.repo.workspace import WorkspaceRequest
from tests.adapters.git.user import SESSION, TASK, User

NAMES = ("a.py", "src/b.py", "src/deep/c d.txt", "é/ü.md", "tool.sh", 'quo"te', "new\nline")


def live_randomly(user: User, seed: int) -> None:
    """Make a history: files come, change, move, become executable and go; a branch is merged."""
    chance = random.Random(seed)
    for number in range(6):
        for path in chance.sample(NAMES, 3):
            target = user.root / path
            if target.exists() and chance.random() < 0.3:
                target.unlink()
            else:
                user.write(
                    path, f"{number} {chance.random()}\n" * chance.randint(1, 3), executable=chance.random() < 0.3
                )
        user.commit(f"Change {number}\n\nwith ä body {seed}")
        if number == 2:
            user.git("checkout", "--quiet", "-b", "side", "HEAD~1")
            user.write("side.txt", f"{seed}\n")
            user.commit("Aside")
            user.git("checkout", "--quiet", "main")
            user.git("merge", "--quiet", "--no-edit", "side")


def blobs(commit: git.Commit) -> dict[str, tuple[str, int]]:
    """Return the hash and mode of each file of a commit."""
    files = (blob for blob in commit.tree.traverse() if isinstance(blob, git.Blob))
    return {str(blob.path): (blob.hexsha, blob.mode) for blob in files}


@pytest.mark.parametrize("seed", range(3))
async def test_the_past_is_what_gitpython_reads(user: User, repository: Repository, seed: int) -> None:
    live_randomly(user, seed)
    ours = await (await repository.checkout_files()).past_commits(99)
    with git.Repo(user.root) as theirs:
        commits = [commit for commit in theirs.iter_commits("HEAD") if len(commit.parents) < 2]
        assert [each.id for each in ours] == [commit.hexsha for commit in commits]
        for mine, commit in zip(ours, commits, strict=True):
            assert mine.message == str(commit.message).strip()
            if commit.parents:  # its own reading of diffs loses what stands behind a line's end in a name
                before, after = blobs(commit.parents[0]), blobs(commit)
                touched = {path for path in before | after if before.get(path) != after.get(path)}
                assert set(mine.paths) == touched


@pytest.mark.parametrize("seed", range(3))
async def test_a_checkpoint_holds_what_gitpython_reads(user: User, repository: Repository, seed: int) -> None:
    live_randomly(user, seed)
    request = WorkspaceRequest(SESSION, TASK, "agent/T-1", user.head())
    workspace = await repository.open(request)
    chance, root = random.Random(seed), Path(workspace.root)
    (root / "made here.txt").write_text(f"{chance.random()}")
    (root / "made here.txt").chmod(0o755)
    checkpoint = await workspace.checkpoint(SESSION, 7, "as it stands")
    with git.Repo(user.root) as theirs:
        commit = theirs.commit(checkpoint.ref)
        assert (commit.hexsha, commit.tree.hexsha) == (checkpoint.commit, checkpoint.tree)
        held = {str(blob.path): blob for blob in commit.tree.traverse() if isinstance(blob, git.Blob)}
        files = await workspace.list_files()
        assert sorted(held) == sorted(files)
        for path, blob in held.items():
            assert blob.data_stream.read() == (root / path).read_bytes()
            assert (blob.mode == blob.executable_mode) == os.access(root / path, os.X_OK)
    await workspace.release(keep=False)
