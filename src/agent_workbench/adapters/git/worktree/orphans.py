"""Branches and worktrees of tasks that were never begun: a stop came between their making and the first event.

The note beside a worktree is durable before its branch is made, so it tells which session wanted what.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_workbench.adapters.git.commands.objects import EXECUTABLE, LINK, Entry
from agent_workbench.adapters.git.commands.refs import Refs, standing_ref
from agent_workbench.adapters.git.worktree.lifecycle import Worktrees
from agent_workbench.adapters.git.worktree.paths import BRANCH_PREFIX, Note, Site, lock_path, site_of
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.workspace import Orphan, WorkspaceRequest
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.locks import lock_holder

Begun = Callable[[SessionId, str], bool]
"""Returns whether a session's journal says that it began a task on a branch; true where that cannot be read."""


def always_begun(_session: SessionId, _branch: str) -> bool:
    """Answer for who knows no journals: nothing is an orphan."""
    return True


class Orphans:
    """The orphans among the worktrees in `folder`. Blocking."""

    def __init__(self, worktrees: Worktrees, folder: Path, checkout: str, begun: Begun) -> None:
        self._worktrees, self._refs = worktrees, worktrees.refs
        self._folder = folder
        self._checkout = checkout
        self._begun = begun

    def remove(self, task: TaskId) -> None:
        """Remove the task's orphans in which there is no work. Whoever calls holds the lock of the task."""
        for site, note in self._noted():
            if note.task == task and not self._begun(SessionId(note.session), note.branch) and not self.work(note):
                self._worktrees.remove(site, note.branch, note.base)

    def find(self) -> tuple[Orphan, ...]:
        """Return all orphans, those with a note first; what a live session is at is none."""
        noted = tuple(self._noted())
        branches = {note.branch for _, note in noted}
        made = [
            (site, note) for site, note in noted if os.path.lexists(site.tree) or self._refs.branch_tip(note.branch)
        ]
        return (
            *(self._told(site, note) for site, note in made if not self._is_owned(note)),
            *(Orphan(branch, "") for branch in self._unknown_branches(branches)),
        )

    def _told(self, site: Site, note: Note) -> Orphan:
        path = str(site.tree) if os.path.lexists(site.tree) else ""
        has_branch = self._refs.branch_tip(note.branch) is not None
        return Orphan(note.branch, path, SessionId(note.session), TaskId(note.task), self.work(note), has_branch)

    def _is_owned(self, note: Note) -> bool:
        return bool(lock_holder(lock_path(self._folder, TaskId(note.task)))) or self._begun(
            SessionId(note.session), note.branch
        )

    def _unknown_branches(self, noted: set[str]) -> Iterator[str]:
        for branch in self._refs.own_branches():
            if branch not in noted and not self._begun(SessionId(""), branch):
                yield branch

    def _noted(self) -> Iterator[tuple[Site, Note]]:
        try:
            places = sorted((self._folder / "private").iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(f"{self._folder} cannot be read", error) from error
        for private in places:
            site = Site(self._folder / private.name, private)
            note = site.note()
            if (
                note is not None
                and note.branch.startswith(BRANCH_PREFIX)
                and site_of(self._folder, note.branch) == site
            ):
                yield site, note

    def work(self, note: Note) -> str:
        """Return what of a workspace might be somebody's work, empty where there provably is none."""
        site = site_of(self._folder, note.branch)
        base, tip, last = _heads(self._refs, note)
        if tip is None and last is None and not os.path.lexists(site.tree):
            return ""
        if note.commits or tip not in {None, base}:
            return "commits of its own"
        if last is not None or os.path.lexists(site.pending):
            return "changes of a session"
        if base is None:
            return "files on a commit that is gone"
        admin = self._worktrees.find_admin(site)
        if admin is not None and (admin / "locked").exists():
            return "a locked worktree"
        changed = self._changed(site.tree, self._worktrees.trees.entries(base)) if os.path.lexists(site.tree) else ""
        return f"a file that was changed: {changed}" if changed else ""

    def _changed(self, tree: Path, entries: dict[str, Entry]) -> str:
        """Return the first path below `tree` that is not as it was put there, empty where there is none."""
        if tree.is_symlink() or not tree.is_dir():
            return str(tree)
        for folder, folders, names in os.walk(tree):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for name in (*names, *links):
                path = Path(folder, name)
                shown = path.relative_to(tree).as_posix()
                if shown != ".git" and not self._is_as_put(path, shown, entries.get(shown)):
                    return shown
        return ""

    def _is_as_put(self, path: Path, name: str, entry: Entry | None) -> bool:
        try:
            if path.is_symlink():
                target = os.readlink(os.fsencode(path))  # noqa: PTH115 - the bytes of the link are its content
                if entry is None:
                    return os.fsdecode(target) == f"{self._checkout}/{name}"
                return entry.mode == LINK and self._worktrees.trees.hash(target) == entry.oid
            if entry is None or not entry.is_regular or not path.is_file():
                return False
            if bool(path.stat().st_mode & 0o100) != (entry.mode == EXECUTABLE):
                return False
            return self._worktrees.trees.hash(path.read_bytes()) == entry.oid
        except OSError:
            return False


def _heads(refs: Refs, note: Note) -> tuple[CommitId | None, CommitId | None, CommitId | None]:
    """Return the commits of a note's base, its branch, and the last checkpoint on it."""
    base = CommitId(note.base)
    request = WorkspaceRequest(SessionId(note.session), TaskId(note.task), note.branch, base)
    try:
        return refs.commit(base), refs.branch_tip(note.branch), refs.commit(standing_ref(request))
    except WorkspaceError:
        return None, None, None
