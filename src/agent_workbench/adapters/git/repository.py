"""The user's repository as the engine knows it: looked at, merged into when asked, and otherwise left alone."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from agent_workbench.adapters.git.commands.discovery import Place, discover
from agent_workbench.adapters.git.commands.identity import WORKBENCH
from agent_workbench.adapters.git.commands.plumbing import GitProgram, Plumbing
from agent_workbench.adapters.git.commands.refs import standing_ref
from agent_workbench.adapters.git.commands.stored_commits import StoredCommits
from agent_workbench.adapters.git.user_checkout.checkout import Checkout
from agent_workbench.adapters.git.user_checkout.checkout_files import CheckoutFiles
from agent_workbench.adapters.git.user_checkout.merge import CheckoutMerge
from agent_workbench.adapters.git.user_checkout.past_tree import PastTree, lay_out
from agent_workbench.adapters.git.user_checkout.recorded_tree import RecordedTree
from agent_workbench.adapters.git.worktree.lifecycle import Worktrees
from agent_workbench.adapters.git.worktree.orphans import Begun, Orphans, always_begun
from agent_workbench.adapters.git.worktree.paths import BRANCH_PREFIX, lock_path, site_of
from agent_workbench.adapters.git.worktree.workspace import GitWorkspace
from agent_workbench.adapters.git.worktree.worktree_files import changes_between
from agent_workbench.core.errors import LockedError, task_locked
from agent_workbench.core.ids import CommitId, SessionId, TaskId, session_suffix
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.workspace import (
    Checkpoint,
    FileStat,
    MergeOutcome,
    MergePreview,
    MergeTarget,
    Orphan,
    RepoFacts,
    WorkspaceFacts,
    WorkspaceRequest,
)
from agent_workbench.system.atomic_files import make_directories, storage_error
from agent_workbench.system.locks import FileLock, describe_holder, lock_holder
from agent_workbench.system.user_dirs import repo_key


class Repository:
    """The repository around `start` (any folder in it); worktrees go below `worktrees_root`.

    Nothing is looked at before the first call. Every method may raise `RepoError`.
    """

    def __init__(self, start: Path, worktrees_root: Path) -> None:
        self._start = start
        self._worktrees_root = worktrees_root
        self._found: tuple[GitProgram, Place] | None = None
        self._finding = threading.Lock()
        self._begun: Begun = always_begun

    def knowing(self, begun: Begun) -> Self:
        """Return this repository, which from now on tells by `begun` what is an orphan; before, nothing is one."""
        self._begun = begun
        return self

    async def inspect(self) -> RepoFacts:
        return await asyncio.to_thread(self._inspect)

    async def list_tracked(self) -> tuple[str, ...]:
        """Return the paths of HEAD's regular files, sorted."""
        return await asyncio.to_thread(self._list_tracked)

    async def own_files(self) -> CheckoutFiles:
        """Return the files of the user's checkout, to be read and searched."""
        return await asyncio.to_thread(lambda: CheckoutFiles(lambda: self._now().checkout))

    async def past_tree(self, commits_ago: int, folder: Path) -> PastTree:
        """Return the files of so many commits before HEAD, written into `folder`; raises what `lay_out` raises."""
        return await asyncio.to_thread(lambda: lay_out(self._now().worktrees.trees, commits_ago, folder))

    async def recorded_files(self, tree: str) -> RecordedTree:
        """Return the files of a tree that a session recorded; raise `WorkspaceError` where it is gone."""
        return await asyncio.to_thread(lambda: RecordedTree(self._now().worktrees.trees, tree))

    async def free_branch(self, task: TaskId, session: SessionId) -> str:
        return await asyncio.to_thread(self._free_branch, task, session)

    async def orphans(self) -> tuple[Orphan, ...]:
        return await asyncio.to_thread(lambda: self._orphans(self._now()).find())

    async def taken(self, tasks: Sequence[TaskId], session: SessionId) -> Mapping[TaskId, str]:
        return await asyncio.to_thread(self._taken, tasks, session)

    async def open(self, request: WorkspaceRequest) -> GitWorkspace:
        opening = asyncio.ensure_future(asyncio.to_thread(self._open, request))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The thread goes on, and what nobody waits for any more would keep the task's lock.
            await asyncio.wait({opening})
            if not opening.cancelled() and opening.exception() is None:
                await opening.result().release(keep=True)
            raise

    async def branch_off(
        self, request: WorkspaceRequest, tree: str, seq: int, message: str
    ) -> tuple[WorkspaceFacts, Checkpoint]:
        return await asyncio.to_thread(self._branch_off, request, tree, seq, message)

    async def diff_stat(self, before: str, after: str) -> tuple[FileStat, ...]:
        """Return the files in which two trees or commits differ; raise `WorkspaceError` where git has not both."""
        return await asyncio.to_thread(lambda: self._now().worktrees.trees.stat(before, after))

    async def changes_between(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return how two trees or commits differ; raise `WorkspaceError` where git has not both."""
        return await asyncio.to_thread(self._changes_between, before, after)

    async def task_commit(self, task: TaskId) -> CommitId | None:
        return await asyncio.to_thread(self._task_commit, task)

    async def merge(self, commit: CommitId, message: str, target: MergeTarget) -> MergeOutcome:
        return await asyncio.to_thread(lambda: self._now().merging.merge(commit, message, target))

    async def merge_preview(self, commit: CommitId) -> MergePreview:
        return await asyncio.to_thread(lambda: self._now().merging.preview(commit))

    def stored_commits(self) -> StoredCommits:
        """Return what reads commits as they are stored."""
        return StoredCommits(lambda: (self._now().plumbing, self._find()[1].algorithm))

    async def snapshot_checkout(self, session: SessionId) -> CommitId:
        """Return a commit on HEAD with the user's uncommitted and untracked files, HEAD itself if there are none.

        Nothing of the user's changes; the commit is kept under `refs/agent/<session>/base`.
        """
        return await asyncio.to_thread(self._snapshot, session)

    def _find(self) -> tuple[GitProgram, Place]:
        with self._finding:
            if self._found is None:
                self._found = discover(str(self._start))
            return self._found

    def _folder(self) -> Path:
        """Return where the repository's worktrees and locks are."""
        _, place = self._find()
        return self._worktrees_root.resolve() / repo_key(place.common_dir)

    def _now(self) -> "_Tools":
        """Return what works on the repository with the configuration it has at this moment."""
        return _Tools(*self._find(), self._folder())

    def _inspect(self) -> RepoFacts:
        return self._now().checkout.facts()

    def _list_tracked(self) -> tuple[str, ...]:
        tools = self._now()
        entries = tools.worktrees.trees.entries(tools.checkout.head())
        return tuple(sorted(path for path, entry in entries.items() if entry.is_regular))

    def _taken(self, tasks: Sequence[TaskId], session: SessionId) -> Mapping[TaskId, str]:
        folder = self._folder()
        holders = ((task, lock_holder(lock_path(folder, task))) for task in tasks)
        return {task: holder for task, holder in holders if holder and not holder.startswith(_held_by(session))}

    def _orphans(self, tools: "_Tools") -> Orphans:
        return Orphans(tools.worktrees, tools.folder, tools.checkout.place.root, self._begun)

    def _remove_orphans(self, tools: "_Tools", task: TaskId, session: SessionId) -> None:
        with suppress(LockedError):  # whoever is at the task has begun it, or will
            lock = _task_lock(tools.folder, task, session)
            try:
                self._orphans(tools).remove(task)
            finally:
                lock.release()

    def _free_branch(self, task: TaskId, session: SessionId) -> str:
        tools = self._now()
        self._remove_orphans(tools, task, session)
        plain = f"{BRANCH_PREFIX}{task}"
        # Where a task was rolled back, its worktree is left and has no branch any more.
        if tools.refs.is_taken(plain) or site_of(tools.folder, plain).note() is not None:
            return f"{plain}-{session_suffix(session)}"
        return plain

    def _open(self, request: WorkspaceRequest) -> GitWorkspace:
        tools = self._now()
        site = site_of(tools.folder, request.branch)
        lock = _task_lock(tools.folder, request.task, request.session)
        try:
            facts, stands_at = tools.worktrees.prepare(request, site)
            return GitWorkspace(tools.worktrees, tools.plumbing, site, facts, request, stands_at, lock)
        except BaseException:
            lock.release()
            raise

    def _branch_off(
        self, request: WorkspaceRequest, tree: str, seq: int, message: str
    ) -> tuple[WorkspaceFacts, Checkpoint]:
        tools = self._now()
        tools.refs.check_room()
        trees, base = tools.worktrees.trees, tools.refs.known_commit(request.base)
        commit = CommitId(trees.commit(trees.tree_of(tree), [base], message, WORKBENCH))
        ref = f"refs/agent/{request.session}/{seq}"
        tools.refs.move(ref, commit, "", "fork")
        # The worktree is made of this when it is opened, as that of any session whose folder is gone.
        tools.refs.set(standing_ref(request), commit)
        folder = str(site_of(tools.folder, request.branch).tree)
        facts = WorkspaceFacts(folder, request.branch, base, trees.tree_of(base))
        return facts, Checkpoint(ref, commit, trees.tree_of(tree))

    def _task_commit(self, task: TaskId) -> CommitId | None:
        tools = self._now()
        head = tools.checkout.head()
        for branch, tip in tools.refs.task_branches(task):
            note = site_of(tools.folder, branch).note()
            elsewhere = note is not None and (note.task != task or note.base == tip)
            if not elsewhere and not tools.refs.is_ancestor(tip, head):
                return tip
        return None

    def _changes_between(self, before: str, after: str) -> tuple[FileChange, ...]:
        trees = self._now().worktrees.trees
        return changes_between(trees, *trees.trees_of(before, after))

    def _snapshot(self, session: SessionId) -> CommitId:
        tools = self._now()
        scratch = tools.folder / "private"
        try:
            make_directories(scratch)
        except OSError as error:
            raise storage_error(f"{scratch} cannot be made", error) from error
        return tools.checkout.snapshot(session, scratch)


class _Tools:
    """What works on the repository; made for each call, as the user may change the configuration in between."""

    def __init__(self, program: GitProgram, place: Place, folder: Path) -> None:
        self.plumbing = Plumbing(program, place.git_dir)
        self.worktrees = Worktrees(place, self.plumbing)
        self.refs = self.worktrees.refs
        self.checkout = Checkout(place, self.plumbing, self.worktrees.trees, self.refs)
        self.merging = CheckoutMerge(self.checkout, self.plumbing, self.worktrees.trees, self.refs)
        self.folder = folder


def _held_by(session: SessionId) -> str:
    """Return how a lock's text begins that this session holds."""
    return f"session {session}, "


def _task_lock(folder: Path, task: TaskId, session: SessionId) -> FileLock:
    """Return the task's lock, held; raise `LockedError` naming the session that has it."""
    path = lock_path(folder, task)
    try:
        make_directories(path.parent)
        # The worktrees hold what may be readable to nobody else in the user's checkout.
        folder.chmod(0o700)
    except OSError as error:
        raise storage_error(f"{path.parent} cannot be made", error) from error
    lock = FileLock(path, f"{_held_by(session)}{describe_holder()}")
    try:
        lock.acquire()
    except LockedError as error:
        raise task_locked(task, error.holder) from error
    return lock
