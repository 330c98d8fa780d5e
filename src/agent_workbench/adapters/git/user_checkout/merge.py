"""Brings a task's commit into the user's branch, after finding out everything that would be in the way."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.git.commands.identity import user_identity
from agent_workbench.adapters.git.commands.objects import Difference, GitObjects, paths_in
from agent_workbench.adapters.git.commands.plumbing import Plumbing, failure
from agent_workbench.adapters.git.commands.refs import Refs
from agent_workbench.adapters.git.file_access.folders import look, parents_of, prune_folders
from agent_workbench.adapters.git.user_checkout.checkout import Checkout
from agent_workbench.adapters.git.worktree.worktree_files import changes_between
from agent_workbench.core.errors import StorageError, TargetMoved, WorkbenchError, WorkspaceError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.workspace import MergeOutcome, MergePreview, MergeTarget

_MERGES_SINCE = (2, 38)
_BY_HAND = "merge it by hand, where git can ask you: git merge {commit}"
# What lies in the git directory while something is under way.
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_MOST_NAMED = 20


class _Plan(Struct, frozen=True):
    """What a merge would do, or why it would not."""

    target: MergeTarget
    tree: str = ""
    how: str = ""
    changed: tuple[Difference, ...] = ()
    obstacles: tuple[str, ...] = ()


class CheckoutMerge:
    """Blocking. `preview` changes nothing of the user's; `merge` does, and only where nothing is in the way."""

    def __init__(self, checkout: Checkout, plumbing: Plumbing, trees: GitObjects, refs: Refs) -> None:
        self._checkout, self._plumbing, self._trees, self._refs = checkout, plumbing, trees, refs
        self._place = checkout.place

    def preview(self, commit: str) -> MergePreview:
        """Return the merge into the checked-out branch as it would be made now."""
        plan = self._plan(self._refs.known_commit(commit))
        head = plan.target.head
        out = self._plumbing.run("rev-list", "--format=%h %s", f"--max-count={_MOST_NAMED}", f"{head}..{commit}")
        lines = out.decode("utf-8", "replace").splitlines()
        commits = tuple(line for line in lines if not line.startswith("commit "))
        changes = changes_between(self._trees, self._trees.tree_of(head), plan.tree) if plan.tree else ()
        return MergePreview(plan.target, commits, changes, plan.obstacles)

    def merge(self, commit: str, message: str, target: MergeTarget) -> MergeOutcome:
        """Merge into the checked-out branch; raise `WorkspaceError` with nothing changed if there are obstacles.

        Raises `TargetMoved`, with nothing changed, if that branch or its commit is not `target`.
        """
        theirs = self._refs.known_commit(commit)
        plan = self._plan(theirs)
        if plan.target != target:
            raise _moved(target, plan.target)
        if plan.obstacles:
            raise WorkspaceError(
                f"{theirs[:12]} was not merged: {' '.join(plan.obstacles)}",
                advice=f"clear that away and merge again, or {_BY_HAND.format(commit=theirs[:12])}",
            )
        if not plan.tree:
            return MergeOutcome(target.head, target.branch, plan.how)
        new = theirs
        if plan.how == "merge":
            author = user_identity(self._plumbing)
            new = CommitId(self._trees.commit(plan.tree, [target.head, theirs], message, author))
        self._bring_in(plan, new)
        return MergeOutcome(new, target.branch, plan.how)

    def _target(self) -> MergeTarget:
        head, branch, _ = self._checkout.where()
        return MergeTarget(branch, head)

    def _check_target(self, target: MergeTarget) -> None:
        """Raise `TargetMoved` unless this branch is checked out and at this commit."""
        now = self._target()
        if now != target:
            raise _moved(target, now)

    def _plan(self, theirs: CommitId) -> _Plan:
        target = self._target()
        head = target.head
        if not target.branch:
            return _Plan(target, obstacles=("HEAD is detached, so there is no branch to merge into.",))
        parted = self._refs.parted(head, theirs)
        if parted == theirs:
            return _Plan(target, how="fast-forward")
        ours, brought = self._trees.trees_of(head, theirs)
        if parted == head:
            tree, how = brought, "fast-forward"
        else:
            how = "merge"
            tree, conflicts = self._merged_tree(head, theirs)
            if conflicts:
                return _Plan(target, obstacles=conflicts)
        changed = tuple(self._trees.differences(ours, tree))
        return _Plan(target, tree, how, changed, tuple(self._in_the_way(changed)))

    def _merged_tree(self, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Return the merged tree, or why there is none."""
        if self._plumbing.program.version < _MERGES_SINCE:
            return "", ("Both branches went on, and merging them needs git 2.38 or newer.",)
        with self._bare_place() as folder:
            outcome = self._plumbing.attempt(
                *("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs),
                git_dir=folder,
                environment={"GIT_OBJECT_DIRECTORY": f"{self._place.common_dir}/objects"},
            )
        if outcome.status not in {0, 1}:
            if "unrelated histories" in outcome.err:
                return "", ("The two histories have no commit in common.",)
            raise failure("merge-tree", outcome)
        tree, *conflicts = paths_in(outcome.out)
        names = dict.fromkeys(filter(None, conflicts))
        return tree, tuple(f"{shown(path)} was changed on both sides." for path in names)[:_MOST_NAMED]

    @contextmanager
    def _bare_place(self) -> Iterator[str]:
        """Yield a git directory that shares the objects and nothing else: no merge driver is configured there."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("refs", "objects"):
                (Path(folder) / name).mkdir()
            (Path(folder) / "HEAD").write_text("ref: refs/heads/none\n")
            version = 0 if self._trees.algorithm == "sha1" else 1
            config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n"
            if version:
                config += f"[extensions]\n\tobjectformat = {self._trees.algorithm}\n"
            (Path(folder) / "config").write_text(config)
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{self._place.common_dir}/shallow", f"{folder}/shallow")
            yield folder

    def _in_the_way(self, changed: tuple[Difference, ...]) -> Iterator[str]:
        for name, what in _UNDER_WAY.items():
            if look(self._place.git_dir, name) is not None:
                yield f"{what.capitalize()} is under way in your checkout."
        if self._checkout.unmerged():
            yield "Your index holds conflicts."
        dirty = self._checkout.dirty()
        gone = {each.path for each in changed if each.after is None}
        for each in changed:
            if each.path in dirty:
                yield f"{shown(each.path)} has changes of yours that are not committed."
            elif each.before is None and (found := self._stands_there(each.path, gone)):
                yield f"{shown(found)} is in the way, and git does not track it."
        yield from self._filtered(each.path for each in changed)

    def _stands_there(self, path: str, gone: set[str]) -> str:
        """Return what would be lost or hinder if a file came to `path`; empty when there is room."""
        for folder in parents_of(path):
            status = look(self._place.root, folder)
            if status is not None and not stat.S_ISDIR(status.st_mode):
                return "" if folder in gone else folder
        status = look(self._place.root, path)
        if status is None:
            return ""
        if not stat.S_ISDIR(status.st_mode):
            return path
        for folder, folders, names in os.walk(f"{self._place.root}/{path}"):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for name in (*names, *links):
                inside = Path(folder, name).relative_to(self._place.root).as_posix()
                if inside not in gone:
                    return inside
        return ""

    def _filtered(self, paths: Iterator[str]) -> Iterator[str]:
        """Yield why files cannot be written without the filter that the user configured for them."""
        stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
        out = self._plumbing.run("check-attr", "-z", "--stdin", "filter", stdin=stdin, work_tree=self._place.root)
        words = paths_in(out)
        for path, value in zip(words[::3], words[2::3], strict=True):
            if value in self._plumbing.filters:
                yield f"{shown(path)} goes through the filter {shown(value)}, which is not run here."

    def _bring_in(self, plan: _Plan, new: CommitId) -> None:
        root, target = self._place.root, plan.target
        # Else read-tree would take a file that was only touched for one that was changed.
        self._plumbing.attempt("update-index", "-q", "--refresh", work_tree=root)
        self._check_target(target)
        switch = ("read-tree", "-m", "-u", "--no-recurse-submodules")
        outcome = self._plumbing.attempt(*switch, target.head, new, work_tree=root)
        if outcome.status:
            self._take_back(plan)
            raise failure("read-tree", outcome)
        try:
            # The branch moves only from the commit that was shown; that it is still checked out git cannot ensure.
            self._check_target(target)
            self._refs.move(f"refs/heads/{target.branch}", new, target.head, f"merge {new[:12]}")
        except WorkbenchError:
            self._plumbing.run(*switch, new, target.head, work_tree=root)
            self._check_target(target)
            raise

    def _take_back(self, plan: _Plan) -> None:
        """Bring back what a failed switch may have changed: all these paths were as in the index before."""
        added = [each.path for each in plan.changed if each.before is None]
        for path in added:
            with suppress(OSError):
                Path(self._place.root, path).unlink()
        prune_folders(self._place.root, added)
        names = b"".join(os.fsencode(each.path) + b"\0" for each in plan.changed if each.before is not None)
        outcome = self._plumbing.attempt(
            "checkout-index", "--force", "-z", "--stdin", stdin=names, work_tree=self._place.root
        )
        if outcome.status:
            raise StorageError(
                f"the merge failed and your files could not all be put back: {shown(outcome.err.strip(), 500)}",
                advice="nothing is lost: when there is space, `git restore .` brings back your last commit's files",
            )


def _moved(shown: MergeTarget, now: MergeTarget) -> TargetMoved:
    """Return the refusal of a merge that was approved for another branch or commit."""
    said = [f"{each.branch or 'a detached HEAD'} at {each.head[:10]}" for each in (shown, now)]
    return TargetMoved(
        f"nothing was merged: the merge was shown for {said[0]}, and your checkout is on {said[1]} now",
        advice="look at the merge again as it would be made now",
    )
