"""Merge of a task's commit into the user's branch, after a search for all obstacles."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.git.commands.objects import (
    GitObjects,
    TreeDifference,
    changes_between,
    paths_in,
    user_identity,
)
from agent_workbench.adapters.git.commands.plumbing import Plumbing, failure
from agent_workbench.adapters.git.commands.refs import Refs
from agent_workbench.adapters.git.file_access.folders import parents_of, prune_folders, status_below
from agent_workbench.adapters.git.user_checkout.checkout import Checkout
from agent_workbench.core.errors import StorageError, TargetMoved, WorkbenchError, WorkspaceError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.workspace import MergeOutcome, MergePreview, MergeTarget

_MERGES_SINCE = (2, 38)
_BY_HAND = "merge by hand, where git can ask you: git merge {commit}"
# Files in the git directory during an unfinished operation.
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_MOST_NAMED = 20


class _PlannedMerge(Struct, frozen=True):
    """Result of a merge as it would be made now, or the obstacles to it."""

    target: MergeTarget
    tree: str = ""
    how: str = ""
    changed: tuple[TreeDifference, ...] = ()
    obstacles: tuple[str, ...] = ()


class CheckoutMerge:
    """Merges into the checked-out branch. Blocking. `preview` changes nothing; `merge` runs only without obstacles."""

    def __init__(self, checkout: Checkout, plumbing: Plumbing, objects: GitObjects, refs: Refs) -> None:
        self._checkout, self._plumbing, self._objects, self._refs = checkout, plumbing, objects, refs
        self._repo_paths = checkout.paths

    def preview(self, commit: str) -> MergePreview:
        """Return a preview of the merge into the checked-out branch."""
        plan = self._plan(self._refs.known_commit(commit))
        head = plan.target.head
        out = self._plumbing.run("rev-list", "--format=%h %s", f"--max-count={_MOST_NAMED}", f"{head}..{commit}")
        lines = out.decode("utf-8", "replace").splitlines()
        commits = tuple(line for line in lines if not line.startswith("commit "))
        changes = changes_between(self._objects, self._objects.tree_of(head), plan.tree) if plan.tree else ()
        return MergePreview(plan.target, commits, changes, plan.obstacles)

    def merge(self, commit: str, message: str, target: MergeTarget) -> MergeOutcome:
        """Merge into the checked-out branch; raise `WorkspaceError` and change nothing if there are obstacles.

        Raises `TargetMoved` and changes nothing if that branch or its commit is not `target`.
        """
        theirs = self._refs.known_commit(commit)
        plan = self._plan(theirs)
        if plan.target != target:
            raise _moved(target, plan.target)
        if plan.obstacles:
            raise WorkspaceError(
                f"{theirs[:12]} was not merged: {' '.join(plan.obstacles)}",
                advice=f"remove the obstacles and merge again, or {_BY_HAND.format(commit=theirs[:12])}",
            )
        if not plan.tree:
            return MergeOutcome(target.head, target.branch, plan.how)
        new = theirs
        if plan.how == "merge":
            author = user_identity(self._plumbing)
            new = CommitId(self._objects.commit(plan.tree, [target.head, theirs], message, author))
        self._move_branch(plan, new)
        return MergeOutcome(new, target.branch, plan.how)

    def _target(self) -> MergeTarget:
        head, branch, _ = self._checkout.where()
        return MergeTarget(branch, head)

    def _check_target(self, target: MergeTarget) -> None:
        """Raise `TargetMoved` unless this branch is checked out at this commit."""
        now = self._target()
        if now != target:
            raise _moved(target, now)

    def _plan(self, theirs: CommitId) -> _PlannedMerge:
        target = self._target()
        head = target.head
        if not target.branch:
            return _PlannedMerge(target, obstacles=("HEAD is detached, so there is no branch to merge into.",))
        merge_base = self._refs.merge_base(head, theirs)
        if merge_base == theirs:
            return _PlannedMerge(target, how="fast-forward")
        ours, brought = self._objects.trees_of(head, theirs)
        if merge_base == head:
            tree, how = brought, "fast-forward"
        else:
            how = "merge"
            tree, conflicts = self._merged_tree(head, theirs)
            if conflicts:
                return _PlannedMerge(target, obstacles=conflicts)
        changed = tuple(self._objects.differences(ours, tree))
        return _PlannedMerge(target, tree, how, changed, tuple(self._obstacles(changed)))

    def _merged_tree(self, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Return the merged tree, or the conflicts."""
        if self._plumbing.program.version < _MERGES_SINCE:
            return "", ("Both branches have new commits; merging them needs git 2.38 or newer.",)
        with self._bare_git_dir() as folder:
            result = self._plumbing.attempt(
                *("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs),
                git_dir=folder,
                environment={"GIT_OBJECT_DIRECTORY": f"{self._repo_paths.common_dir}/objects"},
            )
        if result.status not in {0, 1}:
            if "unrelated histories" in result.err:
                return "", ("The two histories have no commit in common.",)
            raise failure("merge-tree", result)
        tree, *conflicts = paths_in(result.out)
        names = dict.fromkeys(filter(None, conflicts))
        return tree, tuple(f"{shown(path)} was changed on both sides." for path in names)[:_MOST_NAMED]

    @contextmanager
    def _bare_git_dir(self) -> Iterator[str]:
        """Yield a git directory that shares only the objects, so that no merge driver is configured."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("refs", "objects"):
                (Path(folder) / name).mkdir()
            (Path(folder) / "HEAD").write_text("ref: refs/heads/none\n")
            version = 0 if self._objects.algorithm == "sha1" else 1
            config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n"
            if version:
                config += f"[extensions]\n\tobjectformat = {self._objects.algorithm}\n"
            (Path(folder) / "config").write_text(config)
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{self._repo_paths.common_dir}/shallow", f"{folder}/shallow")
            yield folder

    def _obstacles(self, changed: tuple[TreeDifference, ...]) -> Iterator[str]:
        for name, what in _UNDER_WAY.items():
            if status_below(self._repo_paths.git_dir, name) is not None:
                yield f"{what.capitalize()} is in progress in your checkout."
        if self._checkout.unmerged():
            yield "Your index contains conflicts."
        dirty = self._checkout.dirty()
        gone = {each.path for each in changed if each.after is None}
        for each in changed:
            if each.path in dirty:
                yield f"{shown(each.path)} has uncommitted changes of yours."
            elif each.before is None and (found := self._occupied(each.path, gone)):
                yield f"{shown(found)} is untracked and would be overwritten."
        yield from self._filtered(each.path for each in changed)

    def _occupied(self, path: str, gone: set[str]) -> str:
        """Return the file that a new file at `path` would overwrite or collide with, empty if there is none."""
        for folder in parents_of(path):
            status = status_below(self._repo_paths.root, folder)
            if status is not None and not stat.S_ISDIR(status.st_mode):
                return "" if folder in gone else folder
        status = status_below(self._repo_paths.root, path)
        if status is None:
            return ""
        if not stat.S_ISDIR(status.st_mode):
            return path
        for folder, folders, names in os.walk(f"{self._repo_paths.root}/{path}"):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for name in (*names, *links):
                inside = Path(folder, name).relative_to(self._repo_paths.root).as_posix()
                if inside not in gone:
                    return inside
        return ""

    def _filtered(self, paths: Iterator[str]) -> Iterator[str]:
        """Yield the files that cannot be written without a configured filter."""
        stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
        out = self._plumbing.run("check-attr", "-z", "--stdin", "filter", stdin=stdin, work_tree=self._repo_paths.root)
        words = paths_in(out)
        for path, value in zip(words[::3], words[2::3], strict=True):
            if value in self._plumbing.filters:
                yield f"{shown(path)} needs the filter {shown(value)}, which the workbench does not run."

    def _move_branch(self, plan: _PlannedMerge, new: CommitId) -> None:
        root, target = self._repo_paths.root, plan.target
        # Without it read-tree would treat a touched file as changed.
        self._plumbing.attempt("update-index", "-q", "--refresh", work_tree=root)
        self._check_target(target)
        switch = ("read-tree", "-m", "-u", "--no-recurse-submodules")
        result = self._plumbing.attempt(*switch, target.head, new, work_tree=root)
        if result.status:
            self._restore_files(plan)
            raise failure("read-tree", result)
        try:
            # git moves the branch only from the shown commit, but cannot ensure that it is still checked out.
            self._check_target(target)
            self._refs.move(f"refs/heads/{target.branch}", new, target.head, f"merge {new[:12]}")
        except WorkbenchError:
            self._plumbing.run(*switch, new, target.head, work_tree=root)
            self._check_target(target)
            raise

    def _restore_files(self, plan: _PlannedMerge) -> None:
        """Restore the files that a failed switch may have changed; before it, all of them matched the index."""
        added = [each.path for each in plan.changed if each.before is None]
        for path in added:
            with suppress(OSError):
                Path(self._repo_paths.root, path).unlink()
        prune_folders(self._repo_paths.root, added)
        names = b"".join(os.fsencode(each.path) + b"\0" for each in plan.changed if each.before is not None)
        result = self._plumbing.attempt(
            "checkout-index", "--force", "-z", "--stdin", stdin=names, work_tree=self._repo_paths.root
        )
        if result.status:
            raise StorageError(
                f"the merge failed, and some of your files could not be restored: {shown(result.err.strip(), 500)}",
                advice="nothing is lost: free disk space, then `git restore .` restores the files of your last commit",
            )


def _moved(shown: MergeTarget, now: MergeTarget) -> TargetMoved:
    """Return the error for a merge that was approved for another branch or commit."""
    said = [f"{each.branch or 'a detached HEAD'} at {each.head[:10]}" for each in (shown, now)]
    return TargetMoved(
        f"nothing was merged: the merge was shown for {said[0]}, but your checkout is now on {said[1]}",
        advice="review the merge again for the current branch",
    )
