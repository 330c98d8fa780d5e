"""Merge of a task's commit into the user's branch: all obstacles are found first, then index and files are switched."""

import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.git.discovery import RepoPaths
from agent_workbench.adapters.git.folders import open_parent, parents_of, read_files, remove_empty, status_below
from agent_workbench.adapters.git.objects import MAX_FILE_BYTES, GitObjects, TreeDifference, TreeEntry, changes_between
from agent_workbench.adapters.git.plumbing import GitResult, Plumbing, failure
from agent_workbench.adapters.git.refs import Refs
from agent_workbench.adapters.git.stored_commits import read_commit
from agent_workbench.adapters.git.working_trees.merge_result import (
    MergeResult,
    MergeResults,
    MergeSides,
    offered_methods,
)
from agent_workbench.adapters.git.working_trees.user_checkout import Checkout, FileEntries, filtered, read_own_git
from agent_workbench.core.errors import StorageError, TargetMoved, WorkbenchError, WorkspaceError
from agent_workbench.core.history.journal_proof import anchor_lines
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.repo.workspace import MergeMethod, MergeOutcome, MergePreview, MergeTarget
from agent_workbench.system.command_bounds import check_record

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

# Without a refresh, git refuses a file whose times alone differ, also one that it is told to overlook.
_REFRESH = ("update-index", "-q", "--really-refresh")
_SWITCH = ("read-tree", "-m", "-u", "--no-recurse-submodules")


class _PlannedMerge(Struct, frozen=True):
    """Merge as it would be made now, or the obstacles to it; without `sides` there is nothing to merge."""

    target: MergeTarget
    result: MergeResult = MergeResult(MergeMethod.FAST_FORWARD)
    sides: MergeSides | None = None
    changed: tuple[TreeDifference, ...] = ()
    obstacles: tuple[str, ...] = ()


class CheckoutMerge:
    """Merges into the checked-out branch. Blocking. `preview` changes nothing; `merge` runs only without obstacles."""

    def __init__(self, checkout: Checkout, plumbing: Plumbing, objects: GitObjects, refs: Refs) -> None:
        self._checkout, self._plumbing, self._objects, self._refs = checkout, plumbing, objects, refs
        self._repo_paths = checkout.paths
        self._results = MergeResults(checkout.paths, plumbing, objects)
        self._switch = FileSwitch(checkout.paths, plumbing, objects)

    def preview(self, commit: str, method: MergeMethod | None = None) -> MergePreview:
        """Return a preview of the merge into the checked-out branch; None is git's own choice of the method."""
        plan = self._plan(self._refs.known_commit(commit), method)
        head, tree, sides = plan.target.head, plan.result.tree, plan.sides
        out = self._plumbing.run("rev-list", "--format=%h %s", f"--max-count={_MOST_NAMED}", f"{head}..{commit}")
        lines = out.decode("utf-8", "replace").splitlines()
        commits = tuple(line for line in lines if not line.startswith("commit "))
        changes = changes_between(self._objects, self._objects.tree_of(head), tree) if tree else ()
        squashes = sides is not None and plan.result.method is MergeMethod.SQUASH
        return MergePreview(
            *(plan.target, commits, changes, plan.obstacles, plan.result.method),
            methods=offered_methods(sides) if sides is not None else (),
            message=self._results.squash_message(sides) if sides is not None and squashes else "",
            own_git=read_own_git(self._repo_paths, self._plumbing),
        )

    def merge(self, commit: str, message: str, target: MergeTarget, method: MergeMethod | None = None) -> MergeOutcome:
        """Merge into the checked-out branch; raise `WorkspaceError` and change nothing if there are obstacles.

        Raises `TargetMoved` and changes nothing if that branch or its commit is not `target`.
        """
        theirs = self._refs.known_commit(commit)
        plan = self._plan(theirs, method)
        if plan.target != target:
            raise _moved(target, plan.target)
        if plan.obstacles:
            raise WorkspaceError(
                f"{theirs[:12]} was not merged: {' '.join(plan.obstacles)}",
                advice=f"remove the obstacles and merge again, or {_BY_HAND.format(commit=theirs[:12])}",
            )
        if plan.sides is None:
            return MergeOutcome(target.head, target.branch, plan.result.method)
        new = self._results.make(plan.result, plan.sides, message)
        self._move_branch(plan, new)
        return MergeOutcome(new, target.branch, plan.result.method)

    def is_carried(self, commit: str, head: str) -> bool:
        """Return True if a commit of `head` carries the journal's anchors of `commit`: it was squashed or rebased."""
        facts = read_commit(self._plumbing, self._objects.algorithm, commit)
        lines = anchor_lines(facts.message) if facts is not None else ()
        found = (
            self._plumbing.run("rev-list", "--fixed-strings", f"--grep={line}", "--max-count=1", f"{commit}..{head}")
            for line in lines
        )
        return bool(lines) and all(found)

    def _target(self) -> MergeTarget:
        head, branch, _ = self._checkout.where()
        return MergeTarget(branch, head)

    def _check_target(self, target: MergeTarget) -> None:
        """Raise `TargetMoved` unless this branch is checked out at this commit."""
        now = self._target()
        if now != target:
            raise _moved(target, now)

    def _plan(self, theirs: CommitId, method: MergeMethod | None) -> _PlannedMerge:
        target = self._target()
        head = target.head
        if not target.branch:
            return _PlannedMerge(target, obstacles=("HEAD is detached, so there is no branch to merge into.",))
        merge_base = self._refs.merge_base(head, theirs)
        if merge_base == theirs:
            return _PlannedMerge(target)
        sides = MergeSides(head, theirs, merge_base)
        result = self._results.plan(sides, method)
        if result.conflicts:
            return _PlannedMerge(target, result, sides, obstacles=result.conflicts)
        changed = tuple(self._objects.differences(self._objects.tree_of(head), result.tree))
        obstacles = tuple(self._obstacles(target.branch, changed))
        if not obstacles and (reason := self._switch.refusal(head, result.tree)):
            obstacles = (f"git would not write the files: {reason}",)
        return _PlannedMerge(target, result, sides, changed, obstacles)

    def _obstacles(self, branch: str, changed: tuple[TreeDifference, ...]) -> Iterator[str]:
        if elsewhere := self._checkout.holder_of(branch, besides=Path(self._checkout.paths.git_dir)):
            yield f"{shown(branch)} is also checked out in another worktree ({shown(elsewhere)})."
        for name, what in _UNDER_WAY.items():
            if status_below(self._repo_paths.git_dir, name) is not None:
                yield f"{what.capitalize()} is in progress in your checkout."
        if self._checkout.unmerged():
            yield "Your index contains conflicts."
        dirty = self._checkout.dirty()
        overlooked = self._checkout.overlooked_edits({each.path: each.before for each in changed if each.before})
        gone = {each.path for each in changed if each.after is None}
        for each in changed:
            if each.path in dirty:
                yield f"{shown(each.path)} has uncommitted changes of yours."
            elif each.path in overlooked:
                yield f"{shown(each.path)} has changes of yours that git overlooks ({overlooked[each.path]})."
            elif each.before is None and (found := self._occupied(each.path, gone)):
                yield f"{shown(found)} is untracked and would be overwritten."
        for path, name in filtered(self._plumbing, self._repo_paths.root, (each.path for each in changed)):
            yield f"{shown(path)} needs the filter {shown(name)}, which the workbench does not run."

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

    def _move_branch(self, plan: _PlannedMerge, new: CommitId) -> None:
        target = plan.target
        self._switch.refresh()
        self._check_target(target)
        self._switch.run(target.head, new, plan.changed)
        try:
            # git moves the branch only from the shown commit, but cannot ensure that it is still checked out.
            self._check_target(target)
            self._refs.move(f"refs/heads/{target.branch}", new, target.head, f"merge {new[:12]}: {plan.result.method}")
        except WorkbenchError:
            back = [TreeDifference(each.path, each.after, each.before) for each in plan.changed]
            self._switch.run(new, target.head, back)
            self._check_target(target)
            raise


def _moved(shown: MergeTarget, now: MergeTarget) -> TargetMoved:
    """Return the error for a merge that was approved for another branch or commit."""
    said = [f"{each.branch or 'a detached HEAD'} at {each.head[:10]}" for each in (shown, now)]
    return TargetMoved(
        f"nothing was merged: the merge was shown for {said[0]}, but your checkout is now on {said[1]}",
        advice="review the merge again for the current branch",
    )


class FileSwitch:
    """Switches of one checkout. Blocking. A file that the switch did not write is never changed or removed."""

    def __init__(self, paths: RepoPaths, plumbing: Plumbing, objects: GitObjects) -> None:
        self._paths, self._plumbing, self._objects = paths, plumbing, objects
        self._root = paths.root
        self._entries = FileEntries(paths.root, plumbing, objects)

    def refusal(self, before: str, after: str) -> str:
        """Return git's reason to refuse the switch, empty if there is none. Nothing is changed."""
        with _scratch_index() as index:
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{self._paths.git_dir}/index", index)
            self._plumbing.attempt(*_REFRESH, work_tree=self._root, index=index)
            result = self._plumbing.attempt(*_SWITCH, "--dry-run", before, after, work_tree=self._root, index=index)
        return _reason(result) if result.status else ""

    def refresh(self) -> None:
        """Update the times of unchanged files in the user's index."""
        self._plumbing.attempt(*_REFRESH, work_tree=self._root)

    def run(self, before: str, after: str, changed: Sequence[TreeDifference]) -> None:
        """Switch index and files from `before` to `after`, or leave both as they were; `changed` are all differences.

        Raises `WorkspaceError` or `StorageError`, and names files that could not be restored; `TrustError` in a command
        of the agent.
        """
        for own in (self._root, self._paths.common_dir):
            check_record(own)  # before anything that would have to be restored
        # Outside of a sparse checkout a tracked path has no file, and must not get one.
        restorable = [each for each in changed if each.before is None or self._is_there(each.path)]
        folders = {folder for each in changed for folder in parents_of(each.path)}
        new_folders = [folder for folder in folders if not Path(self._root, folder).is_dir()]
        try:
            result = self._plumbing.attempt(*_SWITCH, before, after, work_tree=self._root)
            if result.status:
                raise failure("read-tree", result)
        except WorkbenchError as error:
            self._restore(before, restorable, new_folders, error)
            raise

    def _restore(
        self, before: str, changed: Sequence[TreeDifference], new_folders: Iterable[str], cause: WorkbenchError
    ) -> None:
        """Restore the files that the failed switch wrote or removed; other content is the user's and stays."""
        written = self._written(changed)
        for path in written:
            with suppress(OSError, WorkbenchError), open_parent(self._root, path) as at:
                os.unlink(at.name, dir_fd=at.folder)
        remove_empty(self._root, new_folders)
        gone = {each.path: each.before for each in changed if each.before and not self._is_there(each.path)}
        with _scratch_index() as index:
            # The user's index may tell git to overlook some of the files.
            result = self._plumbing.attempt("read-tree", before, index=index)
            if not result.status:
                names = b"".join(os.fsencode(path) + b"\0" for path in gone)
                words = ("checkout-index", "-q", "-z", "--stdin")
                result = self._plumbing.attempt(*words, stdin=names, work_tree=self._root, index=index)
        missing = self._differing(gone) if result.status else []
        left = self._written([each for each in changed if each.before is None])
        if missing or left:
            raise _not_restored(missing, left, _reason(result) or str(cause)) from cause

    def _written(self, changed: Sequence[TreeDifference]) -> list[str]:
        """Return the paths whose file is what the switch writes, in whole or up to where git stopped."""
        there = self._entries.read(each.path for each in changed if each.after is not None)
        found = []
        for each in changed:
            entry, before, after = there.get(each.path), each.before, each.after
            if entry is None or after is None:
                continue
            if entry.oid == after.oid:
                is_written = before is None or before.oid != after.oid or entry.mode == after.mode
            else:
                is_written = (before is None or entry.oid != before.oid) and self._is_part(each.path, after)
            if is_written:
                found.append(each.path)
        return found

    def _differing(self, entries: Mapping[str, TreeEntry]) -> list[str]:
        """Return the paths whose file is missing or differs from its entry."""
        there = self._entries.read(entries)
        return [path for path, entry in entries.items() if path not in there or there[path].oid != entry.oid]

    def _is_part(self, path: str, entry: TreeEntry) -> bool:
        """Return True if a file holds the beginning of the entry's content, with either kind of line ending."""
        data = read_files(self._root, [path]).get(path)
        if data is None or not entry.is_regular or self._objects.sizes([entry.oid])[entry.oid] > MAX_FILE_BYTES:
            return False
        whole = self._objects.contents([entry.oid])[entry.oid]
        return whole.startswith((data, data.replace(b"\r\n", b"\n").removesuffix(b"\r")))

    def _is_there(self, path: str) -> bool:
        return status_below(self._root, path) is not None


@contextmanager
def _scratch_index() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"{folder}/index"


def _reason(result: GitResult) -> str:
    return shown(result.err.strip().removeprefix("fatal: ").removeprefix("error: "), 500)


def _not_restored(missing: Sequence[str], left: Sequence[str], reason: str) -> StorageError:
    """Return the error that names the files, with commands for these alone."""
    advice = ["free disk space"]
    if missing:
        advice.append(f"`git --literal-pathspecs restore -- {_quoted(missing)}`{_others(missing)}")
    if left:
        advice.append(f"`rm -- {_quoted(left)}`{_others(left)}")
    count = f"{len(missing)} of your files could not be restored" if missing else "files of it could not be removed"
    return StorageError(f"the merge failed, and {count}: {reason}", advice=", then ".join(advice))


def _quoted(paths: Sequence[str]) -> str:
    return " ".join(shlex.quote(path) for path in paths[:_MOST_NAMED])


def _others(paths: Sequence[str]) -> str:
    rest = len(paths) - _MOST_NAMED
    return f" and the same for {rest} others that `git status` names" if rest > 0 else ""
