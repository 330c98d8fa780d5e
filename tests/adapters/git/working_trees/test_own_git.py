"""What the user's own git would do is found without running any of it."""

from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import RepoError
from agent_workbench.core.repo.workspace import OwnGit
from tests.adapters.git.user import User, commit_task

HOOK = "#!/bin/sh\ntouch canary\n"


async def test_a_plain_repository_has_nothing_to_say(user: User, repository: Repository) -> None:
    facts = await repository.inspect()
    assert (facts.own_git, facts.filtered) == (OwnGit(), ())
    assert facts.own_git.left_out == ""


@pytest.mark.parametrize(
    ("value", "signs"), [("true", True), ("1", True), ("on", True), ("no", False), ("0", False), ("", False)]
)
async def test_signatures_as_git_reads_the_setting(
    user: User, repository: Repository, value: str, *, signs: bool
) -> None:
    user.git("config", "commit.gpgSign", value)
    assert (await repository.inspect()).own_git.signs is signs


async def test_a_setting_without_a_value_is_true(user: User, repository: Repository) -> None:
    with (user.root / ".git/config").open("a") as config:
        config.write("[commit]\n\tgpgSign\n")
    assert (await repository.inspect()).own_git.signs


@pytest.mark.parametrize("place", ["", "hooks-of-ours", "~/hooks"])
async def test_hooks_that_git_would_run(user: User, repository: Repository, home: Path, place: str) -> None:
    if place:
        user.git("config", "core.hooksPath", place)
    folder = home / "hooks" if place == "~/hooks" else user.root / (place or ".git/hooks")
    folder.mkdir(exist_ok=True)
    for name in ("commit-msg", "pre-commit", "pre-push", "post-merge.sample"):
        (folder / name).write_text(HOOK)
        (folder / name).chmod(0o755)
    (folder / "post-commit").write_text(HOOK)
    own_git = (await repository.inspect()).own_git
    assert own_git.hooks == ("pre-commit", "commit-msg")
    commit = await commit_task(repository, user.request(), {"new": "x"})
    assert (await repository.merge_preview(commit)).own_git == own_git
    assert "pre-commit, commit-msg" in own_git.left_out
    assert not (user.root / "canary").exists()


async def test_a_folder_of_hooks_that_cannot_be_entered_has_none(user: User, repository: Repository) -> None:
    user.git("config", "core.hooksPath", "x" * 300)
    assert (await repository.inspect()).own_git == OwnGit()


async def test_git_without_an_author(user: User, repository: Repository, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    assert (await repository.inspect()).own_git.nameless
    user.git("config", "user.name", "Ada")
    user.git("config", "user.email", "ada@example.org")
    assert not (await repository.inspect()).own_git.nameless


async def test_files_of_a_filter(user: User, repository: Repository) -> None:
    user.write(".gitattributes", "*.bin filter=lfs\n*.txt filter=unknown\n")
    user.write("big.bin", "version 1\n")
    user.write("a.txt", "a\n")
    user.commit("Large files")
    assert (await repository.inspect()).filtered == ()
    user.git("config", "filter.lfs.smudge", "touch canary")
    assert (await repository.inspect()).filtered == (("big.bin", "lfs"),)
    assert not (user.root / "canary").exists()


async def test_content_that_a_partial_clone_left_out(user: User, tmp_path: Path, worktrees: Path) -> None:
    user.write("sub/deep.txt", "deep\n")
    user.commit("Deep")
    user.git("config", "uploadpack.allowFilter", "true")
    clone = User(tmp_path / "clone")
    clone.git("clone", "--quiet", "--filter=blob:none", "--sparse", f"file://{user.root}", ".")
    repository = Repository(clone.root, worktrees)
    assert (await repository.inspect()).own_git.lacks_objects
    with pytest.raises(RepoError) as refused:
        await commit_task(repository, clone.request(), {"new": "x"})
    assert "--refetch" in refused.value.advice
    clone.git("sparse-checkout", "disable")
    assert not (await repository.inspect()).own_git.lacks_objects
