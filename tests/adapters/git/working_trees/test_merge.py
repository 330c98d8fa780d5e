"""CheckoutMerge into the user's branch: done whole, or refused with everything as it was."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_workbench.adapters.git.plumbing import GitResult, Plumbing
from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import TargetMoved, WorkspaceError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.workspace import MergeTarget
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import TASK, User, commit_task, merge_as_shown

LINES = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def lines(user: User) -> str:
    user.write("lines.txt", LINES)
    user.write("run.sh", "#!/bin/sh\n", executable=True)
    return user.commit("Add lines")


async def test_fast_forward_keeps_what_the_user_has_under_way(
    user: User, repository: Repository, lines: CommitId
) -> None:
    commit = await commit_task(
        repository, user.request(), {"src/app.py": "new\n", "src/more.py": "more\n", "lines.txt": None}
    )
    user.write("README.md", "# Mine\n")
    user.write("staged", "staged\n")
    user.git("add", "staged")
    user.write("untracked", "x")
    assert (await repository.merge_preview(commit)).obstacles == ()
    brings = await repository.merge_preview(commit)
    assert [line.partition(" ")[0] for line in brings.commits] == [user.git("rev-parse", "--short", commit)]
    assert sorted(change.path for change in brings.changes) == ["lines.txt", "src/app.py", "src/more.py"]
    outcome = await merge_as_shown(repository, commit, "Merge T-1")
    assert (outcome.commit, outcome.into, outcome.how) == (commit, "main", "fast-forward")
    assert user.head() == commit
    assert user.git("status", "--porcelain") == " M README.md\nA  staged\n?? untracked"
    assert (user.root / "src/more.py").read_text() == "more\n"
    assert not (user.root / "lines.txt").exists()
    assert "merge" in user.git("reflog", "-1")
    assert await repository.task_commit(TASK) is None


async def test_histories_that_went_apart_are_merged(user: User, repository: Repository, lines: CommitId) -> None:
    commit = await commit_task(repository, user.request(), {"lines.txt": LINES.replace("line 1\n", "one\n")})
    user.write("lines.txt", LINES.replace("line 20\n", "twenty\n"))
    mine = user.commit("Mine")
    outcome = await merge_as_shown(repository, commit, "Merge T-1\n\nBecause.")
    assert outcome.how == "merge"
    assert user.git("show", "-s", "--format=%P|%an|%B", "HEAD").strip() == (
        f"{mine} {commit}|Ada Lovelace|Merge T-1\n\nBecause."
    )
    assert user.git("status", "--porcelain") == ""
    merged = LINES.replace("line 1\n", "one\n").replace("line 20\n", "twenty\n")
    assert (user.root / "lines.txt").read_text() == merged


async def test_a_touched_file_is_no_obstacle(user: User, repository: Repository) -> None:
    commit = await commit_task(repository, user.request(), {"src/app.py": "new\n"})
    user.write("src/app.py", "print('hello')\n")
    assert (await merge_as_shown(repository, commit, "Merge")).commit == user.head() == commit
    assert (user.root / "src/app.py").read_text() == "new\n"


async def test_merging_what_is_merged_changes_nothing(user: User, repository: Repository) -> None:
    commit = await commit_task(repository, user.request(), {"new": "x"})
    await merge_as_shown(repository, commit, "Merge")
    before = fingerprint(user.root)
    assert (await merge_as_shown(repository, commit, "Merge")).commit == commit
    assert fingerprint(user.root) == before


def edit(user: User) -> str:
    user.write("lines.txt", "mine\n")
    return "lines.txt has uncommitted changes of yours."


def stage(user: User) -> str:
    user.write("lines.txt", "mine\n")
    user.git("add", "lines.txt")
    user.write("lines.txt", LINES)
    return "lines.txt has uncommitted changes of yours."


def edit_assumed_unchanged(user: User) -> str:
    user.git("update-index", "--assume-unchanged", "lines.txt")
    user.write("lines.txt", "mine\n")
    return "lines.txt has changes of yours that git overlooks (assume-unchanged)."


def edit_skipped(user: User) -> str:
    user.git("update-index", "--skip-worktree", "lines.txt")
    user.write("lines.txt", "mine\n")
    return "lines.txt has changes of yours that git overlooks (skip-worktree)."


def edit_skipped_as_the_task_does(user: User) -> str:
    user.git("update-index", "--skip-worktree", "lines.txt")
    user.write("lines.txt", LINES.replace("line 1\n", "one\n"))
    return "lines.txt has changes of yours that git overlooks (skip-worktree)."


def remove_assumed_unchanged(user: User) -> str:
    user.git("update-index", "--assume-unchanged", "lines.txt")
    (user.root / "lines.txt").unlink()
    return "lines.txt has changes of yours that git overlooks (assume-unchanged)."


def touch_skipped(user: User) -> str:
    user.git("update-index", "--skip-worktree", "lines.txt")
    (user.root / "lines.txt").chmod(0o755)
    return "git would not write the files: Entry 'lines.txt' not uptodate. Cannot merge."


def remove(user: User) -> str:
    (user.root / "lines.txt").unlink()
    return "lines.txt has uncommitted changes of yours."


def change_mode(user: User) -> str:
    (user.root / "lines.txt").chmod(0o755)
    return "lines.txt has uncommitted changes of yours."


def conflict(user: User) -> str:
    user.write("lines.txt", LINES.replace("line 1\n", "eins\n"))
    user.commit("Mine")
    return "lines.txt was changed on both sides."


def put_in_the_way(user: User) -> str:
    user.write("new/file", "mine")
    return "new/file is untracked and would be overwritten."


def put_ignored_in_the_way(user: User) -> str:
    (user.root / ".git/info/exclude").write_text("new\n")
    user.write("new/file", "mine")
    return "new/file is untracked and would be overwritten."


def put_file_for_folder(user: User) -> str:
    user.write("new", "mine")
    return "new is untracked and would be overwritten."


def put_folder_for_file(user: User) -> str:
    user.write("new/file/deep", "mine")
    return "new/file/deep is untracked and would be overwritten."


def put_link_for_folder(user: User) -> str:
    (user.root / "new").symlink_to("/tmp")
    return "new is untracked and would be overwritten."


def detach(user: User) -> str:
    user.git("checkout", "--quiet", "--detach")
    return "HEAD is detached, so there is no branch to merge into."


def be_merging(user: User) -> str:
    (user.root / ".git/MERGE_HEAD").write_text(user.head())
    return "A merge is in progress in your checkout."


def start_anew(user: User) -> str:
    user.git("checkout", "--quiet", "--orphan", "anew")
    user.git("commit", "--quiet", "--message", "Anew")
    return "The two histories have no commit in common."


@pytest.mark.parametrize(
    "trouble",
    [
        *(edit, stage, remove, change_mode, conflict, put_in_the_way, put_ignored_in_the_way, put_file_for_folder),
        *(put_folder_for_file, put_link_for_folder, detach, be_merging, start_anew, edit_assumed_unchanged),
        *(edit_skipped, edit_skipped_as_the_task_does, remove_assumed_unchanged, touch_skipped),
    ],
)
@pytest.mark.slow(quick=2)
async def test_an_obstacle_is_named_and_nothing_is_changed(
    trouble: Callable[[User], str], user: User, repository: Repository, lines: CommitId
) -> None:
    files: Mapping[str, str] = {"lines.txt": LINES.replace("line 1\n", "one\n"), "new/file": "x"}
    commit = await commit_task(repository, user.request(), files)
    sentence = trouble(user)
    before = fingerprint(user.root)
    assert (await repository.merge_preview(commit)).obstacles == (sentence,)
    with pytest.raises(WorkspaceError, match="was not merged") as error:
        await merge_as_shown(repository, commit, "Merge")
    assert sentence in str(error.value)
    assert f"git merge {commit[:12]}" in error.value.advice
    assert fingerprint(user.root) == before


async def test_what_git_overlooks_is_merged_where_it_is_unchanged(
    user: User, repository: Repository, lines: CommitId
) -> None:
    commit = await commit_task(repository, user.request(), {"lines.txt": "one\n", "src/app.py": "new\n"})
    user.git("update-index", "--assume-unchanged", "lines.txt")
    user.git("update-index", "--skip-worktree", "src/app.py")
    os.utime(user.root / "lines.txt", (1, 1))
    assert (await merge_as_shown(repository, commit)).commit == user.head()
    assert [(user.root / name).read_text() for name in ("lines.txt", "src/app.py")] == ["one\n", "new\n"]


async def test_a_path_outside_of_a_sparse_checkout_gets_no_file(
    user: User, repository: Repository, lines: CommitId
) -> None:
    commit = await commit_task(repository, user.request(), {"lines.txt": "one\n", "src/app.py": "new\n"})
    user.git("sparse-checkout", "set", "--no-cone", "/*", "!/src")
    assert (await merge_as_shown(repository, commit)).commit == user.head()
    assert (user.root / "lines.txt").read_text() == "one\n"
    assert not (user.root / "src").exists()
    assert user.git("status", "--porcelain") == ""


@pytest.mark.parametrize("path", ["lines.txt", "README.md", "src/app.py", "new/file"])
async def test_what_the_user_writes_while_the_merge_is_made_stays(
    path: str, user: User, repository: Repository, lines: CommitId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user saves a file right before git switches the files: git refuses, and nothing is restored over it."""
    files = {"lines.txt": "one\n", "README.md": None, "new/file": "x", "src/app.py": "new\n"}
    commit = await commit_task(repository, user.request(), files)
    (user.root / "new").mkdir()
    target = (await repository.merge_preview(commit)).target
    attempt = Plumbing.attempt
    seen: list[dict[str, str]] = []

    def after_the_user(self: Plumbing, *arguments: str, **options: Any) -> GitResult:
        if arguments[:3] == ("read-tree", "-m", "-u") and "index" not in options:
            user.write(path, "mine\n")
            seen.append(fingerprint(user.root))
        return attempt(self, *arguments, **options)

    monkeypatch.setattr(Plumbing, "attempt", after_the_user)
    with pytest.raises(WorkspaceError, match="read-tree failed"):
        await repository.merge(commit, "Merge", target)
    assert seen == [fingerprint(user.root)]


def switch(user: User) -> None:
    user.git("checkout", "--quiet", "-b", "side")


def go_on(user: User) -> None:
    user.write("README.md", "# More\n")
    user.commit("Mine")


def take_back(user: User) -> None:
    user.git("reset", "--quiet", "--hard", "HEAD^")


def leave_branch(user: User) -> None:
    user.git("checkout", "--quiet", "--detach")


MOVES = pytest.mark.parametrize("move", [switch, go_on, take_back, leave_branch])


@MOVES
async def test_a_merge_is_made_only_where_it_was_shown_to_go(
    move: Callable[[User], None], user: User, repository: Repository, lines: CommitId
) -> None:
    commit = await commit_task(repository, user.request(), {"new": "x"})
    shown = await repository.merge_preview(commit)
    assert shown.target == MergeTarget("main", lines)
    move(user)
    before = fingerprint(user.root)
    with pytest.raises(TargetMoved, match=f"shown for main at {lines[:10]}, but your checkout is now on"):
        await repository.merge(commit, "Merge", shown.target)
    assert fingerprint(user.root) == before


@pytest.mark.parametrize(
    ("move", "after"),
    [
        *((switch, "update-index"), (switch, "read-tree"), (leave_branch, "read-tree")),
        *((go_on, "update-index"), (take_back, "update-index")),
    ],
)
async def test_a_checkout_that_moves_while_the_merge_is_made_gets_none_of_it(
    move: Callable[[User], None], after: str, user: User, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's git runs right after one of ours: what it did stays, and nothing else changes."""
    user.write("notes.txt", "mine\n")
    head = user.commit("Notes")
    commit = await commit_task(repository, user.request(), {"src/app.py": "new\n", "new": "x"})
    target = (await repository.merge_preview(commit)).target
    attempt = Plumbing.attempt
    moved: list[str] = []

    def and_the_user(self: Plumbing, *arguments: str, **options: Any) -> GitResult:
        outcome = attempt(self, *arguments, **options)
        if arguments[0] == after and not moved:
            move(user)
            moved.append(user.git("rev-parse", "--symbolic-full-name", "HEAD") + user.head())
        return outcome

    monkeypatch.setattr(Plumbing, "attempt", and_the_user)
    with pytest.raises(TargetMoved):
        await repository.merge(commit, "Merge", target)
    monkeypatch.undo()
    assert moved == [user.git("rev-parse", "--symbolic-full-name", "HEAD") + user.head()]
    assert user.git("rev-parse", "main") == (head if move in (switch, leave_branch) else user.head())
    assert user.git("status", "--porcelain") == ""
    assert not (user.root / "new").exists()


async def test_a_switched_branch_gets_the_merge(user: User, repository: Repository) -> None:
    commit = await commit_task(repository, user.request(), {"new": "x"})
    main = user.head()
    user.git("checkout", "--quiet", "-b", "side")
    assert (await merge_as_shown(repository, commit, "Merge")).into == "side"
    assert user.git("rev-parse", "main", "side") == f"{main}\n{commit}"


async def test_a_folder_becomes_a_file_and_a_file_a_folder(user: User, repository: Repository) -> None:
    files = {"src/app.py": None, "src": "a file", "README.md": None, "README.md/part": "x"}
    workspace = await repository.open(user.request())
    root = Path(workspace.facts.path)
    (root / "src/app.py").unlink()
    (root / "src").rmdir()
    (root / "src").write_text("a file")
    (root / "README.md").unlink()
    (root / "README.md").mkdir()
    (root / "README.md/part").write_text("x")
    point = await workspace.checkpoint(user.request().session, 1, "x")
    commit = await workspace.commit(point.tree, "Turn around")
    assert {change.path for change in await workspace.changes(point.tree)} == set(files)
    await merge_as_shown(repository, commit, "Merge")
    assert (user.root / "src").read_text() == "a file"
    assert (user.root / "README.md/part").read_text() == "x"
    assert user.git("status", "--porcelain") == ""


async def test_another_git_at_work_is_waited_for_by_the_user(user: User, repository: Repository) -> None:
    commit = await commit_task(repository, user.request(), {"src/app.py": "new\n", "new": "x"})
    (user.root / ".git/index.lock").touch()
    before = fingerprint(user.root)
    with pytest.raises(WorkspaceError, match=r"index\.lock exists"):
        await merge_as_shown(repository, commit, "Merge")
    (user.root / ".git/index.lock").unlink()
    assert fingerprint(user.root) == before
    await merge_as_shown(repository, commit, "Merge")
    assert user.git("status", "--porcelain") == ""


async def test_an_unknown_commit(user: User, repository: Repository) -> None:
    for name in ("0" * 40, "--all", "main:src"):
        with pytest.raises(WorkspaceError, match="is not a commit"):
            await merge_as_shown(repository, CommitId(name), "Merge")
