"""Orphaned branches and worktrees: a crash came between their creation and the first event of the task.

The record beside a worktree is durable before its branch exists, so it names the session and the task.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_workbench.adapters.git.objects import EXECUTABLE, GITLINK, LINK, TreeEntry
from agent_workbench.adapters.git.refs import BRANCH_PREFIX, Refs, position_ref
from agent_workbench.adapters.git.working_trees.lifecycle import Worktrees
from agent_workbench.adapters.git.working_trees.paths import WorktreePaths, WorktreeRecord, lock_path, worktree_paths
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.repo.workspace import Orphan, WorkspaceRequest
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.locks import lock_holder

HasBegun = Callable[[SessionId, str], bool]
"""Returns True if a session's journal says that it began a task on a branch, or if the journal cannot be read."""


def assume_begun(_session: SessionId, _branch: str) -> bool:
    """Return True. Default of `HasBegun`: without journals, no branch can be recognized as an orphan."""
    return True


class Orphans:
    """Finder of orphans among the worktrees in `folder`. Its methods block."""

    def __init__(self, worktrees: Worktrees, folder: Path, checkout: str, has_begun: HasBegun) -> None:
        self._worktrees, self._refs = worktrees, worktrees.refs
        self._folder = folder
        self._checkout = checkout
        self._has_begun = has_begun

    def remove(self, task: TaskId) -> None:
        """Remove the task's orphans that contain no work. The caller holds the lock of the task."""
        for paths, record in self.recorded_worktrees():
            if (
                record.task == task
                and not self._has_begun(SessionId(record.session), record.branch)
                and not self.work(record)
            ):
                self._worktrees.remove(paths, record.branch, record.base)

    def find(self) -> tuple[Orphan, ...]:
        """Return all orphans, those with a record first; the worktree of a live session is none."""
        recorded = tuple(self.recorded_worktrees())
        branches = {record.branch for _, record in recorded}
        made = [
            (paths, record)
            for paths, record in recorded
            if os.path.lexists(paths.tree) or self._refs.branch_tip(record.branch)
        ]
        return (
            *(self._described(paths, record) for paths, record in made if not self._is_owned(record)),
            *(Orphan(branch, "") for branch in self._unknown_branches(branches)),
        )

    def former(self) -> tuple[Orphan, ...]:
        """Return the worktrees of a repository that is not this one, whose branches are not those of this one."""
        return tuple(
            Orphan(
                *(record.branch, str(paths.tree), SessionId(record.session), TaskId(record.task)),
                holds="files of a former repository",
                has_branch=False,
            )
            for paths, record in self.recorded_worktrees()
            if os.path.lexists(paths.tree)
        )

    def _described(self, paths: WorktreePaths, record: WorktreeRecord) -> Orphan:
        path = str(paths.tree) if os.path.lexists(paths.tree) else ""
        has_branch = self._refs.branch_tip(record.branch) is not None
        return Orphan(
            record.branch, path, SessionId(record.session), TaskId(record.task), self.work(record), has_branch
        )

    def _is_owned(self, record: WorktreeRecord) -> bool:
        return bool(lock_holder(lock_path(self._folder, TaskId(record.task)))) or self._has_begun(
            SessionId(record.session), record.branch
        )

    def _unknown_branches(self, recorded: set[str]) -> Iterator[str]:
        for branch in self._refs.own_branches():
            if branch not in recorded and not self._has_begun(SessionId(""), branch):
                yield branch

    def paths_of(self, record: WorktreeRecord) -> WorktreePaths:
        """Return the paths of a record's worktree."""
        return worktree_paths(self._folder, record.branch)

    def recorded_worktrees(self) -> Iterator[tuple[WorktreePaths, WorktreeRecord]]:
        """Yield the worktrees of the workbench with their records."""
        try:
            places = sorted((self._folder / "private").iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(f"{self._folder} cannot be read", error) from error
        for private in places:
            paths = WorktreePaths(self._folder / private.name, private)
            record = paths.record()
            if (
                record is not None
                and record.branch.startswith(BRANCH_PREFIX)
                and worktree_paths(self._folder, record.branch) == paths
            ):
                yield paths, record

    def work(self, record: WorktreeRecord) -> str:
        """Return a description of possible work in a workspace, empty if there is certainly none."""
        paths = worktree_paths(self._folder, record.branch)
        base, tip, last = _heads(self._refs, record)
        if tip is None and last is None and not os.path.lexists(paths.tree):
            return ""
        if record.commits or tip not in {None, base}:
            return "commits of its own"
        if last is not None or os.path.lexists(paths.pending):
            return "changes of a session"
        if base is None:
            return "files on a commit that is gone"
        git_folder = self._worktrees.find_git_folder(paths)
        if git_folder is not None and (git_folder / "locked").exists():
            return "a locked worktree"
        changed = (
            self._first_changed(paths.tree, self._worktrees.objects.entries(base))
            if os.path.lexists(paths.tree)
            else ""
        )
        return f"a file that was changed: {changed}" if changed else ""

    def _first_changed(self, tree: Path, entries: dict[str, TreeEntry]) -> str:
        """Return the first path below `tree` that differs from its entry, empty if there is none."""
        if tree.is_symlink() or not tree.is_dir():
            return str(tree)
        for folder, folders, names in os.walk(tree):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for name in (*names, *links):
                path = Path(folder, name)
                shown = path.relative_to(tree).as_posix()
                if shown != ".git" and not self._is_unchanged(path, shown, entries.get(shown)):
                    return shown
        return ""

    def _is_unchanged(self, path: Path, name: str, entry: TreeEntry | None) -> bool:
        try:
            if path.is_symlink():
                target = os.readlink(os.fsencode(path))  # noqa: PTH115 - the bytes of the link are its content
                if entry is None or entry.mode == GITLINK:
                    return os.fsdecode(target) == f"{self._checkout}/{name}"
                return entry.mode == LINK and self._worktrees.objects.hash(target) == entry.oid
            if entry is None or not entry.is_regular or not path.is_file():
                return False
            if bool(path.stat().st_mode & 0o100) != (entry.mode == EXECUTABLE):
                return False
            return self._worktrees.objects.hash(path.read_bytes()) == entry.oid
        except OSError:
            return False


def _heads(refs: Refs, record: WorktreeRecord) -> tuple[CommitId | None, CommitId | None, CommitId | None]:
    """Return the commits of a record's base, its branch, and the last checkpoint on it."""
    base = CommitId(record.base)
    request = WorkspaceRequest(SessionId(record.session), TaskId(record.task), record.branch, base)
    try:
        return refs.commit(base), refs.branch_tip(record.branch), refs.commit(position_ref(request))
    except WorkspaceError:
        return None, None, None
