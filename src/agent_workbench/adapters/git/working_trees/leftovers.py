"""Leftovers in git: branches, worktrees and checkpoints of sessions, and those that a crash left before any event.

The record beside a worktree is durable before its branch exists, so it names the session and the task.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from agent_workbench.adapters.git.folder_content import FolderContent
from agent_workbench.adapters.git.objects import EXECUTABLE, GITLINK, LINK, TreeEntry
from agent_workbench.adapters.git.refs import BRANCH_PREFIX, Refs, branch_refs, position_ref
from agent_workbench.adapters.git.stored_commits import read_commit
from agent_workbench.adapters.git.tree_writer import TreeWriter
from agent_workbench.adapters.git.working_trees.lifecycle import (
    WorktreePaths,
    WorktreeRecord,
    Worktrees,
    lock_path,
    worktree_paths,
)
from agent_workbench.adapters.git.working_trees.merge import CheckoutMerge
from agent_workbench.adapters.git.working_trees.user_checkout import Checkout
from agent_workbench.adapters.git.working_trees.workspace import WorktreeFiles
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.history.journal_proof import read_trailers
from agent_workbench.core.history.leftovers import Leftover, LeftoverKind, SessionFacts, is_over
from agent_workbench.core.ids import SESSION_ID, CommitId, SessionId, TaskId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.repo.workspace import Orphan, WorkspaceRequest
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.folder_trees import disk_usage
from agent_workbench.system.locks import FileLock, describe_holder, lock_holder

HasBegun = Callable[[SessionId, str], bool]
"""Returns True if a session's journal says that it began a task on a branch, or if the journal cannot be read."""

CHECKPOINTS = "refs/agent/"
BYTECODE = (".pyc", ".pyo")


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


class GitLeftovers:
    """Finder and remover of the leftovers of one repository. `links` are those of worktrees. Blocking."""

    def __init__(
        self, worktrees: Worktrees, checkout: Checkout, merging: CheckoutMerge, orphans: Orphans, folder: Path
    ) -> None:
        self._worktrees, self._refs, self._objects = worktrees, worktrees.refs, worktrees.objects
        self._checkout, self._merging, self._orphans, self._folder = checkout, merging, orphans, folder

    def find(self, facts: SessionFacts, links: Sequence[str]) -> tuple[Leftover, ...]:
        """Return the branches that the workbench made, then the checkpoints, each by name."""
        records = [record for _, record in self._orphans.recorded_worktrees()]
        work = [self._work(record, facts, links) for record in sorted(records, key=lambda each: each.branch)]
        refs = self._checkpoints()
        return (*work, *(self._kept_refs(SessionId(each), refs[each], facts) for each in sorted(refs)))

    def remove(self, leftover: Leftover, facts: SessionFacts, links: Sequence[str]) -> None:
        """Remove a leftover as it was listed; raise `LockedError` or `WorkspaceError` with all of it still there."""
        if leftover.kind is LeftoverKind.CHECKPOINTS:
            session = SessionId(leftover.name.removeprefix(CHECKPOINTS))
            refs = self._checkpoints().get(session, {})
            _check_same(self._kept_refs(session, refs, facts), leftover)
            self._refs.delete_all(refs)
            return
        paths, record = next(
            (each for each in self._orphans.recorded_worktrees() if each[1].branch == leftover.name), (None, None)
        )
        if paths is None or record is None:
            raise WorkspaceError(f"{leftover.name} is gone", advice="`agent clean` lists what there is now")
        with FileLock(lock_path(self._folder, TaskId(record.task)), f"agent clean, {describe_holder()}"):
            now = self._work(record, facts, links, locked=True)
            _check_same(now, leftover)
            tip = self._refs.branch_tip(record.branch)
            self._worktrees.remove(paths, record.branch, tip or "")
        if self._refs.branch_tip(record.branch) is not None:
            raise WorkspaceError(f"the branch {record.branch} moved and is kept", advice="`agent clean` lists it again")

    def _work(
        self, record: WorktreeRecord, facts: SessionFacts, links: Sequence[str], *, locked: bool = False
    ) -> Leftover:
        paths = self._orphans.paths_of(record)
        tip, head = self._refs.branch_tip(record.branch), self._checkout.head()
        merged = tip is not None and tip != record.base and self._is_merged(tip, head)
        own = tip is None or tip in {record.base, *record.commits}
        session = SessionId(record.session)
        unfinished = facts.unfinished(session)
        if merged:
            state = "merged"
        elif tip is None or tip == record.base:
            state = "not finished" if unfinished else "abandoned, no commit"
        else:
            state = f"not merged, {counted_text(self._refs.count(record.base, tip), 'commit')}"
        kept = "" if locked else lock_holder(lock_path(self._folder, TaskId(record.task)))
        kept = f"in use by {kept}" if kept else facts.holder(session)
        kept = kept or ("" if own or merged else "it has commits that the workbench did not make")
        kept = kept or self._occupied(paths, record) or self._changed(paths, record, tip, links)
        there = os.path.lexists(paths.tree)
        return Leftover(
            LeftoverKind.BRANCH,
            record.branch,
            f"{state}{', worktree' if there else ''}",
            disk_usage(paths.tree) if there else 0,
            safe=merged or (not unfinished and tip in {None, record.base}),
            kept=kept,
            seen=f"{tip} {record.session}",
            anchors=self._anchored(tip),
            session=session,
            refs=branch_refs(session, record.branch, tip) if tip is not None else {},
        )

    def _is_merged(self, tip: CommitId, head: CommitId) -> bool:
        return self._refs.is_ancestor(tip, head) or self._merging.is_carried(tip, head)

    def _anchored(self, tip: CommitId | None) -> tuple[SessionId, ...]:
        facts = read_commit(self._checkout.plumbing, self._objects.algorithm, tip) if tip is not None else None
        found = read_trailers(facts.commit, facts.message).anchors if facts is not None else ()
        return tuple(dict.fromkeys(each.session for each in found))

    def _occupied(self, paths: WorktreePaths, record: WorktreeRecord) -> str:
        """Return why git itself needs the branch or worktree, empty if it does not."""
        git_folder = self._worktrees.find_git_folder(paths)
        if git_folder is not None and (git_folder / "locked").exists():
            return "its worktree is locked (git worktree lock)"
        holder = self._checkout.holder_of(record.branch, besides=git_folder)
        return f"it is checked out in {shown(holder)}" if holder else ""

    def _changed(self, paths: WorktreePaths, record: WorktreeRecord, tip: CommitId | None, links: Sequence[str]) -> str:
        """Return that the worktree has changes which are in no commit and no checkpoint, empty if it has none."""
        if not paths.tree.is_dir() or paths.tree.is_symlink():
            return ""
        request = WorkspaceRequest(SessionId(record.session), TaskId(record.task), record.branch, CommitId(record.base))
        known = (tip, self._refs.commit(position_ref(request)), self._refs.commit(record.base))
        first = ""
        for commit in dict.fromkeys(filter(None, known)):
            tree = self._objects.tree_of(commit)
            content = FolderContent(self._objects, str(paths.tree), tree, links)
            writer = TreeWriter(self._objects, str(paths.tree), paths.scratch)
            changes = WorktreeFiles(self._objects, content, writer, paths).unapproved_changes(tree)
            found = [change for change in changes if not change.path.endswith(BYTECODE)]
            if not found:
                return ""
            first = first or found[0].path
        return f"{shown(first)} in its worktree has changes that are in no commit" if first else "its base is gone"

    def _checkpoints(self) -> dict[str, dict[str, str]]:
        """Return the refs of each session with their objects; other names below `refs/agent/` are not ours."""
        found: dict[str, dict[str, str]] = {}
        for ref, oid in self._refs.below(CHECKPOINTS):
            session = ref.removeprefix(CHECKPOINTS).partition("/")[0]
            if SESSION_ID.fullmatch(session):
                found.setdefault(session, {})[ref] = oid
        return found

    def _kept_refs(self, session: SessionId, refs: Mapping[str, str], facts: SessionFacts) -> Leftover:
        summary = facts.summaries.get(session)
        old = summary is not None and is_over(summary) and summary.last < facts.before
        state = "its journal is gone" if summary is None else "over" if is_over(summary) else "not finished"
        return Leftover(
            LeftoverKind.CHECKPOINTS,
            f"{CHECKPOINTS}{session}",
            f"{counted_text(len(refs), 'ref')}, {state}",
            self._refs.disk_usage(refs),
            safe=(summary is None or old) and not facts.unfinished(session),
            kept=facts.holder(session),
            seen=sha256(repr(sorted(refs.items())).encode("utf-8", "surrogateescape")).hexdigest(),
            anchors=(session,),
            session=session,
            refs=refs,
        )


def _check_same(now: Leftover, listed: Leftover) -> None:
    """Raise `WorkspaceError` if a leftover cannot be removed any more, or is not what was listed."""
    if now.kept or now.seen != listed.seen:
        raise WorkspaceError(
            f"{listed.name} was not removed: {now.kept or 'it changed since it was listed'}",
            advice="`agent clean` lists what there is now",
        )
