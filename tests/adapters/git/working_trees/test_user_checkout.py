"""The user's checkout in every state it may be in, described or refused with the cause."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from agent_workbench.adapters.git.plumbing import find_git, git_environment
from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import RepoError, StorageError, WorkspaceError
from agent_workbench.core.patch.values import FileChange, FileContent
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import SESSION, TASK, User, commit_task, merge_as_shown


async def test_a_clean_checkout(user: User, repository: Repository) -> None:
    facts = await repository.inspect()
    assert facts.root == str(user.root)
    assert facts.git_dir == facts.common_dir == str(user.root / ".git")
    assert facts.head == user.head()
    assert facts.branch == "main"
    assert (facts.dirty_paths, facts.untracked_paths, facts.shallow, facts.submodules) == ((), (), False, ())


async def test_from_a_folder_inside(user: User, worktrees: Path) -> None:
    assert (await Repository(user.root / "src", worktrees).inspect()).root == str(user.root)


async def test_uncommitted_changes_are_told_from_touched_files(user: User, repository: Repository) -> None:
    user.write("data.bin", b"\0\1")
    user.write("run.sh", "#!/bin/sh\n")
    user.commit("More")
    user.write("src/app.py", "changed\n")
    user.write("staged\nname", "x")
    user.git("add", "staged\nname")
    user.write('quoted "name".txt', "x")
    (user.root / "README.md").unlink()
    (user.root / "run.sh").chmod(0o755)
    os.utime(user.root / "data.bin", (1, 1))
    (user.root / ".gitignore").write_text("*.log\n")
    user.write("noise.log", "x")
    before = fingerprint(user.root)
    facts = await repository.inspect()
    assert facts.dirty_paths == ("README.md", "run.sh", "src/app.py", "staged\nname")
    assert facts.untracked_paths == (".gitignore", 'quoted "name".txt')
    assert fingerprint(user.root) == before


async def test_a_snapshot_holds_what_git_shows_of_the_checkout(user: User, repository: Repository) -> None:
    user.write("hidden", "theirs\n")
    user.write("run.sh", "one\n")
    user.commit("More")
    user.write("src/app.py", "staged\n")
    user.git("add", "src/app.py")
    user.git("sparse-checkout", "set", "--no-cone", "/*", "!/src")
    user.git("update-index", "--skip-worktree", "src/app.py")
    (user.root / "src/app.py").unlink(missing_ok=True)
    user.git("update-index", "--assume-unchanged", "hidden")
    user.write("hidden", "mine\n")
    user.git("config", "core.fileMode", "false")
    user.write("run.sh", "two\n", executable=True)
    before = fingerprint(user.root)
    commit = await repository.snapshot_checkout(SESSION, {})
    assert user.git("diff", "--raw", "--abbrev=4", "HEAD", commit) == (
        f":100644 100644 {user.git('rev-parse', '--short=4', 'HEAD:run.sh')} "
        f"{user.git('rev-parse', '--short=4', f'{commit}:run.sh')} M\trun.sh\n"
        f":100644 100644 {user.git('rev-parse', '--short=4', 'HEAD:src/app.py')} "
        f"{user.git('rev-parse', '--short=4', ':src/app.py')} M\tsrc/app.py"
    )
    assert user.git("show", f"{commit}:run.sh") == "two"
    assert fingerprint(user.root) == before


async def test_line_endings_that_git_would_turn_are_not_dirt(user: User, repository: Repository) -> None:
    user.git("config", "core.autocrlf", "true")
    user.write("dos.txt", "one\r\ntwo\r\n")
    user.commit("Add dos.txt")
    os.utime(user.root / "dos.txt", (1, 1))
    assert (await repository.inspect()).dirty_paths == ()


async def test_a_detached_head(user: User, repository: Repository) -> None:
    user.git("checkout", "--quiet", "--detach")
    facts = await repository.inspect()
    assert (facts.branch, facts.head) == ("", user.head())


async def test_a_shallow_clone(user: User, tmp_path: Path, worktrees: Path) -> None:
    user.write("more", "x")
    user.commit("More")
    clone = User(tmp_path / "clone")
    clone.git("clone", "--quiet", "--depth=1", f"file://{user.root}", ".")
    clone.git("config", "user.name", "Ada")
    repository = Repository(clone.root, worktrees)
    assert (await repository.inspect()).shallow
    commit = await commit_task(repository, clone.request(), {"new": "x"})
    assert (await merge_as_shown(repository, commit, "Merge")).commit == clone.head()


async def test_a_submodule_is_named_and_left_alone(user: User, tmp_path: Path, repository: Repository) -> None:
    inner = User(tmp_path / "inner")
    inner.git("init", "--quiet")
    inner.write("x", "x")
    inner.commit("Inner")
    user.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub")
    user.commit("Add sub")
    user.write("sub/x", "changed")
    before = fingerprint(user.root)
    facts = await repository.inspect()
    assert facts.submodules == ("sub",)
    workspace = await repository.open(user.request())
    assert await workspace.unapproved_changes(workspace.facts.tree) == ()
    assert (Path(workspace.facts.path) / "sub").is_dir()
    with pytest.raises(WorkspaceError, match="is in the submodule sub"):
        await workspace.write([FileChange("sub/new", None, FileContent(b"x"))], workspace.facts.tree)
    (Path(workspace.facts.path) / "sub").rmdir()
    point = await workspace.checkpoint(SESSION, 1, "x")
    assert point.tree == workspace.facts.tree
    await workspace.release(keep=False)
    assert fingerprint(user.root) == before


async def test_a_linked_worktree_of_the_user(user: User, tmp_path: Path, worktrees: Path) -> None:
    linked = User(tmp_path / "linked")
    user.git("worktree", "add", "--quiet", "-b", "side", str(linked.root))
    repository = Repository(linked.root, worktrees)
    facts = await repository.inspect()
    assert (facts.root, facts.branch) == (str(linked.root), "side")
    assert facts.common_dir == str(user.root / ".git")
    before = fingerprint(user.root)
    commit = await commit_task(repository, linked.request(), {"new": "x"})
    await merge_as_shown(repository, commit, "Merge")
    assert linked.head() == commit
    assert (linked.root / "new").exists()
    assert linked.git("status", "--porcelain") == ""
    assert fingerprint(user.root) == before | {"ref refs/heads/side": commit}


async def test_no_repository(tmp_path: Path, worktrees: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(RepoError, match="is not in a git repository") as error:
        await Repository(tmp_path / "plain", worktrees).inspect()
    assert "git init" in error.value.advice


@pytest.mark.parametrize("how", [["--bare"], []])
async def test_a_bare_repository(how: list[str], tmp_path: Path, worktrees: Path) -> None:
    bare = User(tmp_path / "bare")
    bare.git("init", "--quiet", *how)
    if not how:
        bare.git("config", "core.bare", "true")
    with pytest.raises(RepoError, match="bare repository"):
        await Repository(bare.root, worktrees).inspect()


async def test_no_commit_yet(tmp_path: Path, worktrees: Path) -> None:
    fresh = User(tmp_path / "fresh")
    fresh.git("init", "--quiet")
    for act in (Repository(fresh.root, worktrees).inspect(), Repository(fresh.root, worktrees).task_commit(TASK)):
        with pytest.raises(RepoError, match="no commit on the branch main yet") as error:
            await act
        assert "git commit" in error.value.advice


async def test_a_git_file_that_leads_nowhere(tmp_path: Path, worktrees: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/.git").write_text("gitdir: /nowhere\n")
    with pytest.raises(RepoError, match="does not lead to a repository"):
        await Repository(tmp_path / "odd", worktrees).inspect()


async def test_a_pipe_in_place_of_a_file_is_a_change(user: User, repository: Repository) -> None:
    (user.root / "README.md").unlink()
    os.mkfifo(user.root / "README.md")
    with (user.root / "src/app.py").open("wb") as file:
        file.truncate(2**41)
    assert (await repository.inspect()).dirty_paths == ("README.md", "src/app.py")


def test_git_does_not_run_for_ever(user: User) -> None:
    os.mkfifo(user.root / "pipe")
    with pytest.raises(StorageError, match=r"git hash-object did not end within 0\.1 s") as error:
        find_git("/nowhere").run(["hash-object", str(user.root / "pipe")], environment=git_environment(), seconds=0.1)
    assert "named pipe" in error.value.advice


async def test_a_configuration_that_cannot_be_read(user: User, repository: Repository) -> None:
    with (user.root / ".git/config").open("a") as config:
        config.write("[core\n")
    with pytest.raises(RepoError, match="bad config line"):
        await repository.inspect()


@pytest.mark.skipif(os.geteuid() != 0, reason="machine lacks: a user who may give files away")
async def test_a_repository_of_somebody_else(user: User, repository: Repository) -> None:
    for path in (user.root, user.root / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(RepoError, match="belongs to another user") as error:
        await repository.inspect()
    assert f"safe.directory {user.root}" in error.value.advice


async def test_no_git(user: User, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{user.root}:.:{tmp_path}")
    (user.root / "git").symlink_to(shutil.which("true") or "/bin/true")
    with pytest.raises(RepoError, match="git was not found"):
        await repository.inspect()


async def test_an_old_git(repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text("#!/bin/sh\necho git version 2.17.1\n")
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(RepoError, match=r"too old: git version 2\.17\.1"):
        await repository.inspect()


async def test_all_whole_clones_have_the_same_first_commit(user: User, worktrees: Path, tmp_path: Path) -> None:
    async def first_of(folder: Path) -> str:
        checkout = await Repository(folder, worktrees).checkout_files()
        return await asyncio.to_thread(checkout.first_commit)

    first = await first_of(user.root)
    user.write("next.txt", "next\n")
    user.commit("next")
    user.git("clone", "-q", user.root.as_uri(), str(tmp_path / "whole"))
    user.git("clone", "-q", "--depth=1", user.root.as_uri(), str(tmp_path / "shallow"))
    assert await first_of(user.root) == await first_of(tmp_path / "whole") == first
    with pytest.raises(RepoError, match="shallow clone"):
        await first_of(tmp_path / "shallow")
