"""Fast-forward, merge commit, squash and rebase: the same promises about the user's checkout hold for each."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.core.errors import TargetMoved, WorkspaceError
from agent_workbench.core.history.journal_proof import read_trailers
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.workspace import MergeMethod, MergeOutcome
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.user import TASK, User, commit_task
from tests.adapters.git.working_trees.test_merge import (
    LINES,
    be_merging,
    conflict,
    detach,
    edit,
    go_on,
    leave_branch,
    put_in_the_way,
    stage,
    start_anew,
    switch,
    take_back,
)

FAST_FORWARD, MERGE, SQUASH, REBASE = (
    MergeMethod.FAST_FORWARD,
    MergeMethod.MERGE,
    MergeMethod.SQUASH,
    MergeMethod.REBASE,
)
ANCHOR = "Agent-Journal: 20260102T030405-abc234:7:" + "a" * 64
CHANGE = {"lines.txt": LINES.replace("line 1\n", "one\n"), "new/file": "x"}


@pytest.fixture
def lines(user: User) -> str:
    user.write("lines.txt", LINES)
    return user.commit("Add lines")


async def done_task(user: User, repository: Repository) -> CommitId:
    """Return a task's commit whose message has an anchor, by an author of its own."""
    commit = await commit_task(repository, user.request(), CHANGE)
    message = f"fix: it\n\nBecause.\n\n{ANCHOR}\n"
    tree, parent = user.git("rev-parse", f"{commit}^{{tree}}"), user.git("rev-parse", f"{commit}^")
    author = ("-c", "user.name=Mia", "-c", "user.email=mia@example.org")
    new = user.git(*author, "commit-tree", tree, "-p", parent, "-m", message.strip())
    user.git("update-ref", "refs/heads/agent/T-1", new)
    return CommitId(new)


def diverge(user: User) -> CommitId:
    user.write("lines.txt", LINES.replace("line 20\n", "twenty\n"))
    return user.commit("Mine")


async def merge_by(repository: Repository, commit: str, method: MergeMethod, message: str = "") -> MergeOutcome:
    shown = await repository.merge_preview(CommitId(commit), method)
    assert shown.method is method
    return await repository.merge(CommitId(commit), message or shown.message, shown.target, method)


BOTH = LINES.replace("line 1\n", "one\n").replace("line 20\n", "twenty\n")


async def test_the_methods_that_make_a_difference_are_offered(user: User, repository: Repository, lines: str) -> None:
    commit = await done_task(user, repository)
    assert (await repository.merge_preview(commit)).methods == (FAST_FORWARD, MERGE, SQUASH)
    diverge(user)
    shown = await repository.merge_preview(commit)
    assert (shown.method, shown.methods) == (MERGE, (MERGE, SQUASH, REBASE))


async def test_a_squash_is_one_commit_of_the_user_with_the_anchors(
    user: User, repository: Repository, lines: str
) -> None:
    commit = await done_task(user, repository)
    mine = diverge(user)
    user.write("README.md", "# Not committed\n")
    shown = await repository.merge_preview(commit, SQUASH)
    assert shown.message == "fix: it\n\nBecause."
    outcome = await merge_by(repository, commit, SQUASH)
    assert (outcome.commit, outcome.how) == (user.head(), "squash")
    assert user.git("show", "-s", "--format=%P|%an|%B", "HEAD").strip() == (
        f"{mine}|Ada Lovelace|fix: it\n\nBecause.\n\n{ANCHOR}"
    )
    assert (user.root / "lines.txt").read_text() == BOTH
    assert user.git("status", "--porcelain") == " M README.md"
    assert await repository.task_commit(TASK) is None


async def test_a_rebase_keeps_author_date_and_message(user: User, repository: Repository, lines: str) -> None:
    commit = await done_task(user, repository)
    mine = diverge(user)
    shape = "--format=%an|%ae|%ad|%B"
    before = user.git("show", "-s", shape, commit)
    outcome = await merge_by(repository, commit, REBASE)
    assert outcome.how == "rebase"
    assert user.git("show", "-s", shape, "HEAD") == before
    assert user.git("show", "-s", "--format=%P|%cn", "HEAD") == f"{mine}|Ada Lovelace"
    assert (user.root / "lines.txt").read_text() == BOTH
    assert user.git("status", "--porcelain") == ""
    assert read_trailers(outcome.commit, user.git("show", "-s", "--format=%B", "HEAD").encode()).anchors
    assert await repository.task_commit(TASK) is None


async def test_several_commits_are_rebased_one_by_one_without_those_that_are_there_already(
    user: User, repository: Repository, lines: str
) -> None:
    commit = await done_task(user, repository)
    user.git("checkout", "--quiet", "agent/T-1")
    user.write("second", "2\n")
    user.commit("Second")
    user.write("third", "3\n")
    tip = user.commit("Third")
    user.git("checkout", "--quiet", "main")
    user.git("cherry-pick", "--keep-redundant-commits", tip)
    diverge(user)
    shown = await repository.merge_preview(tip, SQUASH)
    assert shown.message == "Third\n\n- fix: it\n- Second"
    await merge_by(repository, tip, REBASE)
    assert user.git("log", "--format=%s", "-5").split("\n") == ["Second", "fix: it", "Mine", "Third", "Add lines"]
    assert user.git("diff", "--stat", commit, "HEAD", "--", "new/file") == ""


async def test_a_merge_commit_can_be_asked_for(user: User, repository: Repository, lines: str) -> None:
    commit = await done_task(user, repository)
    await merge_by(repository, commit, MERGE, "Merge it")
    assert user.git("show", "-s", "--format=%P|%s", "HEAD") == f"{lines} {commit}|Merge it"
    assert user.git("rev-parse", "HEAD^{tree}") == user.git("rev-parse", f"{commit}^{{tree}}")


async def test_a_rebase_without_commits_of_the_user_is_a_fast_forward(
    user: User, repository: Repository, lines: str
) -> None:
    commit = await done_task(user, repository)
    shown = await repository.merge_preview(commit, REBASE)
    assert shown.method is FAST_FORWARD
    assert (await repository.merge(commit, "", shown.target, REBASE)).commit == commit == user.head()


async def test_a_branch_with_commits_of_its_own_is_not_fast_forwarded(
    user: User, repository: Repository, lines: str
) -> None:
    commit = await done_task(user, repository)
    diverge(user)
    before = fingerprint(user.root)
    with pytest.raises(WorkspaceError, match="cannot be fast-forwarded"):
        await merge_by(repository, commit, FAST_FORWARD)
    assert fingerprint(user.root) == before


@pytest.mark.parametrize("method", [MERGE, SQUASH, REBASE])
@pytest.mark.parametrize("trouble", [edit, stage, conflict, put_in_the_way, detach, be_merging, start_anew])
@pytest.mark.slow(quick=2)
async def test_an_obstacle_stops_each_method_with_nothing_changed(
    trouble: Callable[[User], str], method: MergeMethod, user: User, repository: Repository, lines: str
) -> None:
    commit = await done_task(user, repository)
    user.write("README.md", "# More\n")
    user.commit("Mine too")
    sentence = trouble(user)
    before = fingerprint(user.root)
    shown = await repository.merge_preview(commit, method)
    with pytest.raises(WorkspaceError, match="was not merged"):
        await repository.merge(commit, "Message", shown.target, method)
    assert fingerprint(user.root) == before
    if trouble is start_anew and method is REBASE:
        sentence = "A commit to rebase is a merge or has no parent."
    assert [each.removeprefix(f"Commit {commit[:10]}: ") for each in shown.obstacles] == [sentence]


@pytest.mark.slow(quick=4)
@pytest.mark.parametrize("method", MergeMethod)
@pytest.mark.parametrize("move", [switch, go_on, take_back, leave_branch])
async def test_each_method_merges_only_where_it_was_shown_to_go(
    move: Callable[[User], None], method: MergeMethod, user: User, repository: Repository, lines: str
) -> None:
    commit = await done_task(user, repository)
    shown = await repository.merge_preview(commit, method)
    move(user)
    before = fingerprint(user.root)
    with pytest.raises(TargetMoved):
        await repository.merge(commit, "Message", shown.target, method)
    assert fingerprint(user.root) == before


@pytest.mark.parametrize("method", MergeMethod)
async def test_a_branch_that_is_checked_out_elsewhere_does_not_move(
    method: MergeMethod, user: User, repository: Repository, lines: str, tmp_path: Path
) -> None:
    commit = await done_task(user, repository)
    user.git("worktree", "add", "--quiet", "--force", str(tmp_path / "other"), "main")
    (obstacle,) = (await repository.merge_preview(commit, method)).obstacles
    assert obstacle.startswith("main is also checked out in another worktree (")
    before = fingerprint(user.root)
    with pytest.raises(WorkspaceError, match="also checked out"):
        await merge_by(repository, commit, FAST_FORWARD)
    assert fingerprint(user.root) == before


@pytest.mark.parametrize("method", MergeMethod)
async def test_no_hook_or_filter_of_the_repository_runs(
    method: MergeMethod, user: User, repository: Repository, lines: str, tmp_path: Path
) -> None:
    commit = await done_task(user, repository)
    if method in (MERGE, REBASE):
        diverge(user)
    canary = tmp_path / "ran"
    for hook in ("pre-commit", "commit-msg", "post-merge", "post-rewrite", "reference-transaction", "post-checkout"):
        user.write(f".git/hooks/{hook}", f"#!/bin/sh\necho {hook} >> {canary}\n", executable=True)
    user.git("config", "merge.driver.driver", f"touch {canary}")
    user.git("config", "commit.gpgSign", "true")
    user.git("config", "gpg.program", f"touch {canary}")
    canary.unlink(missing_ok=True)
    await merge_by(repository, commit, method, "Message")
    assert not canary.exists()


async def test_a_commit_whose_author_is_not_valid_is_not_rebased(
    user: User, repository: Repository, lines: str
) -> None:
    commit = await done_task(user, repository)
    raw = user.git("cat-file", "commit", commit).replace("author Mia <mia@example.org> ", "author ")
    user.write("raw", raw + "\n")
    broken = user.git("hash-object", "-t", "commit", "-w", "--literally", "raw")
    (user.root / "raw").unlink()
    diverge(user)
    before = fingerprint(user.root)
    with pytest.raises(WorkspaceError, match="no valid author"):
        await merge_by(repository, broken, REBASE)
    assert fingerprint(user.root) == before


async def test_a_bare_repository_with_worktrees_has_no_checkout_of_its_own(
    user: User, lines: str, tmp_path: Path, worktrees: Path
) -> None:
    bare, linked = User(tmp_path / "bare.git"), User(tmp_path / "linked")
    user.git("clone", "--quiet", "--bare", str(user.root), str(bare.root))
    bare.git("worktree", "add", "--quiet", str(linked.root), "main")
    repository = Repository(linked.root, worktrees)
    commit = await commit_task(repository, linked.request(), CHANGE)
    shown = await repository.merge_preview(commit, FAST_FORWARD)
    assert shown.obstacles == ()
    await repository.merge(commit, "Message", shown.target, FAST_FORWARD)
    assert (linked.root / "new/file").read_text() == "x"
