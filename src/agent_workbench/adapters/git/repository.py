"""Port `Workspaces` on the user's git repository. Also: tracked files, tree comparison, merges, and stored commits."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from agent_workbench.adapters.git.discovery import RepoPaths, discover
from agent_workbench.adapters.git.local_refs import LocalRefs
from agent_workbench.adapters.git.objects import WORKBENCH, changes_between
from agent_workbench.adapters.git.plumbing import GitProgram, Plumbing
from agent_workbench.adapters.git.refs import BRANCH_PREFIX, position_ref
from agent_workbench.adapters.git.remote_transport import Transport, remote_url
from agent_workbench.adapters.git.session_refs import GitSessionRefs, RemoteTools
from agent_workbench.adapters.git.stored_commits import StoredCommits
from agent_workbench.adapters.git.working_trees.checkout_files import (
    CheckoutFiles,
    PastTree,
    RecordedTree,
    write_past_tree,
)
from agent_workbench.adapters.git.working_trees.checkout_records import CheckoutRecords, Standing
from agent_workbench.adapters.git.working_trees.leftovers import GitLeftovers, HasBegun, Orphans, assume_begun
from agent_workbench.adapters.git.working_trees.lifecycle import Worktrees, lock_path, worktree_paths
from agent_workbench.adapters.git.working_trees.merge import CheckoutMerge
from agent_workbench.adapters.git.working_trees.user_checkout import Checkout
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.core.errors import LockedError, task_locked
from agent_workbench.core.history.leftovers import Leftover, SessionFacts
from agent_workbench.core.ids import CommitId, SessionId, TaskId, session_suffix
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.ports.shared_state import Signatures
from agent_workbench.core.repo.workspace import (
    Checkpoint,
    FileStat,
    MergeMethod,
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

BringTask = Callable[[TaskId], Awaitable[bool]]
"""Brings the branch of a task that another machine did, and returns True if there is one."""


class Repository:
    """Repository that contains the folder `start`; worktrees are created below `worktrees_root`, a folder of the state.

    Nothing is read before the first call. Every method may raise `RepoError`.
    """

    def __init__(self, start: Path, worktrees_root: Path) -> None:
        self._start = start
        self._worktrees_root = worktrees_root
        self._found: tuple[GitProgram, RepoPaths] | None = None
        self._records = CheckoutRecords(worktrees_root.parent)
        self._standing = Standing()
        self._finding = threading.Lock()
        self._has_begun: HasBegun = assume_begun
        self._bring: BringTask | None = None

    def with_journals(self, has_begun: HasBegun) -> Self:
        """Return this repository after setting the test that recognizes orphans; without it there are none."""
        self._has_begun = has_begun
        return self

    def with_sharing(self, bring: BringTask) -> Self:
        """Return this repository after setting what brings a task's branch from another machine."""
        self._bring = bring
        return self

    async def inspect(self) -> RepoFacts:
        facts = await asyncio.to_thread(lambda: self._now().checkout.facts())  # noqa: PLW0108 - `_now` blocks
        return replace(facts, copy_of=self._standing.copy_of, left=self._standing.left)

    async def target(self) -> MergeTarget:
        head, branch, _ = await asyncio.to_thread(lambda: self._now().checkout.where())  # noqa: PLW0108 - `_now` blocks
        return MergeTarget(branch, head)

    async def list_tracked(self) -> tuple[str, ...]:
        return await asyncio.to_thread(lambda: self._now().tracked())

    async def checkout_files(self) -> CheckoutFiles:
        return await asyncio.to_thread(lambda: CheckoutFiles(lambda: self._now().checkout))

    async def past_tree(self, commits_ago: int, folder: Path) -> PastTree:
        """Write an earlier tree into `folder` and return it; raise as `write_past_tree` does."""
        return await asyncio.to_thread(lambda: write_past_tree(self._now().worktrees.objects, commits_ago, folder))

    async def recorded_files(self, tree: str) -> RecordedTree:
        """Return the files of a tree that a session recorded; raise `WorkspaceError` if it is gone."""
        return await asyncio.to_thread(lambda: RecordedTree(self._now().worktrees.objects, tree))

    async def free_branch(self, task: TaskId, session: SessionId) -> str:
        return await asyncio.to_thread(self._free_branch, task, session)

    async def orphans(self) -> tuple[Orphan, ...]:
        return await asyncio.to_thread(self._orphans)

    async def leftovers(self, facts: SessionFacts, links: Sequence[str]) -> tuple[Leftover, ...]:
        """Return the branches, worktrees and checkpoints that the workbench made."""
        return await asyncio.to_thread(lambda: self._now().leftovers(self._has_begun).find(facts, links))

    async def remove_leftover(self, leftover: Leftover, facts: SessionFacts, links: Sequence[str]) -> None:
        """Remove one of them as it was listed; raise `LockedError` or `WorkspaceError`."""
        await asyncio.to_thread(lambda: self._now().leftovers(self._has_begun).remove(leftover, facts, links))

    async def taken(self, tasks: Sequence[TaskId], session: SessionId) -> Mapping[TaskId, str]:
        return await asyncio.to_thread(self._taken, tasks, session)

    async def open(self, request: WorkspaceRequest) -> GitWorkspace:
        opening = asyncio.ensure_future(asyncio.to_thread(self._open, request))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The thread continues, and an abandoned workspace would keep the task's lock.
            await asyncio.wait({opening})
            if not opening.cancelled() and opening.exception() is None:
                await opening.result().release(keep=True)
            raise

    async def branch_off(
        self, request: WorkspaceRequest, tree: str, seq: int, message: str
    ) -> tuple[WorkspaceFacts, Checkpoint]:
        return await asyncio.to_thread(self._branch_off, request, tree, seq, message)

    async def diff_stat(self, before: str, after: str) -> tuple[FileStat, ...]:
        """Return statistics of the files that differ between two trees or commits; raise `WorkspaceError`."""
        return await asyncio.to_thread(lambda: self._now().worktrees.objects.stat(before, after))

    async def changes_between(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return the changes between two trees or commits; raise `WorkspaceError` if one is missing."""
        return await asyncio.to_thread(lambda: self._now().changes_between(before, after))

    async def task_commit(self, task: TaskId) -> CommitId | None:
        found = await asyncio.to_thread(lambda: self._now().task_commit(task))
        if found is not None or self._bring is None or not await self._bring(task):
            return found
        return await asyncio.to_thread(lambda: self._now().task_commit(task))

    async def merge(
        self, commit: CommitId, message: str, target: MergeTarget, method: MergeMethod | None = None
    ) -> MergeOutcome:
        return await asyncio.to_thread(lambda: self._now().merging.merge(commit, message, target, method))

    async def merge_preview(self, commit: CommitId, method: MergeMethod | None = None) -> MergePreview:
        return await asyncio.to_thread(lambda: self._now().merging.preview(commit, method))

    def stored_commits(self) -> StoredCommits:
        """Return a reader of the stored commits."""
        return StoredCommits(lambda: (self._now().plumbing, self._find()[1].algorithm))

    def session_refs(self, remote: str, signatures: Signatures, worker: str) -> GitSessionRefs:
        """Return the refs of sessions at the git remote `remote`; nothing is read before the first call."""
        return GitSessionRefs(lambda: self._now().remote(remote), signatures, worker)

    async def remote_url(self, name: str) -> str:
        """Return the address to which a git remote pushes, empty if there is no such remote."""
        return await asyncio.to_thread(lambda: remote_url(name, self._now().plumbing))

    async def snapshot_checkout(
        self, session: SessionId, unsaved: Mapping[str, bytes], without: Sequence[str] = ()
    ) -> CommitId:
        return await asyncio.to_thread(lambda: self._now().snapshot(session, unsaved, without))

    async def take_over(self, *, leave: bool = False) -> str:
        """Continue the work of a repository that is gone and had the same id; with `leave`, never ask for it again.

        Returns the path where that one was; raises `RepoError` if there is none, `LockedError` if it is in use.
        """
        return await asyncio.to_thread(lambda: self._records.take_over(self._find()[1], leave=leave))

    def remember(self) -> None:
        """Record the checkout, in which work begins, so that it is recognized where it is moved. Blocks.

        Raises `RepoError` if the user has to say whether it continues another one.
        """
        self._records.remember(self._find()[1])

    def _find(self) -> tuple[GitProgram, RepoPaths]:
        with self._finding:
            if self._found is None:
                program, paths = discover(str(self._start))
                self._standing = self._records.settle(paths)
                self._found = program, paths
            return self._found

    def _orphans(self) -> tuple[Orphan, ...]:
        tools = self._now()
        found = tools.orphans(self._has_begun).find()
        for folder in self._records.former(self._find()[1]):
            found += Orphans(tools.worktrees, folder, tools.checkout.paths.root, self._has_begun).former()
        return found

    def _folder(self) -> Path:
        """Return the folder of the repository's worktrees and locks."""
        _, paths = self._find()
        return self._worktrees_root.resolve() / repo_key(paths.common_dir)

    def _now(self) -> "_Tools":
        """Return the git tools for the current configuration of the repository."""
        return _Tools(*self._find(), self._folder())

    def _taken(self, tasks: Sequence[TaskId], session: SessionId) -> Mapping[TaskId, str]:
        folder = self._folder()
        holders = ((task, lock_holder(lock_path(folder, task))) for task in tasks)
        return {task: holder for task, holder in holders if holder and not holder.startswith(_held_by(session))}

    def _remove_orphans(self, tools: "_Tools", task: TaskId, session: SessionId) -> None:
        with suppress(LockedError):  # the holder of the lock has begun the task, or will
            lock = _task_lock(tools.folder, task, session)
            try:
                tools.orphans(self._has_begun).remove(task)
            finally:
                lock.release()

    def _free_branch(self, task: TaskId, session: SessionId) -> str:
        tools = self._now()
        self._remove_orphans(tools, task, session)
        plain = f"{BRANCH_PREFIX}{task}"
        # After a rollback the worktree of a task remains without a branch.
        if tools.refs.is_taken(plain) or worktree_paths(tools.folder, plain).record() is not None:
            return f"{plain}-{session_suffix(session)}"
        return plain

    def _open(self, request: WorkspaceRequest) -> GitWorkspace:
        tools = self._now()
        self.remember()
        paths = worktree_paths(tools.folder, request.branch)
        lock = _task_lock(tools.folder, request.task, request.session)
        try:
            facts, position = tools.worktrees.prepare(request, paths)
            return GitWorkspace(tools.worktrees, tools.plumbing, paths, facts, request, position, lock)
        except BaseException:
            lock.release()
            raise

    def _branch_off(
        self, request: WorkspaceRequest, tree: str, seq: int, message: str
    ) -> tuple[WorkspaceFacts, Checkpoint]:
        tools = self._now()
        self.remember()
        return tools.branch_off(request, tree, seq, message)


class _Tools:
    """Git tools for one call; the user may change the configuration between calls."""

    def __init__(self, program: GitProgram, paths: RepoPaths, folder: Path) -> None:
        self.plumbing = Plumbing(program, paths.git_dir)
        self.worktrees = Worktrees(paths, self.plumbing)
        self.refs = self.worktrees.refs
        self.checkout = Checkout(paths, self.plumbing, self.worktrees.objects, self.refs)
        self.merging = CheckoutMerge(self.checkout, self.plumbing, self.worktrees.objects, self.refs)
        self.folder = folder

    def orphans(self, has_begun: HasBegun = assume_begun) -> Orphans:
        """Return the finder of worktrees, and of those that no session owns."""
        return Orphans(self.worktrees, self.folder, self.checkout.paths.root, has_begun)

    def leftovers(self, has_begun: HasBegun) -> GitLeftovers:
        """Return the finder of what the workbench made."""
        return GitLeftovers(self.worktrees, self.checkout, self.merging, self.orphans(has_begun), self.folder)

    def remote(self, remote: str) -> RemoteTools:
        """Return the tools for the refs of sessions at a git remote."""
        transport = Transport(self.checkout.paths, self.plumbing, self.folder / "remote", remote)
        lock = partial(_holding, self.folder)
        local = LocalRefs(self.worktrees, self.checkout, self.orphans(), self.folder, lock)
        return RemoteTools(transport, local, self.worktrees.objects)

    def tracked(self) -> tuple[str, ...]:
        """Return the regular files of HEAD, sorted."""
        entries = self.worktrees.objects.entries(self.checkout.head())
        return tuple(sorted(path for path, entry in entries.items() if entry.is_regular))

    def changes_between(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return the changes between two trees or commits; raise `WorkspaceError` if one is missing."""
        objects = self.worktrees.objects
        return changes_between(objects, *objects.trees_of(before, after))

    def task_commit(self, task: TaskId) -> CommitId | None:
        """Return the newest commit of a task that HEAD does not contain, None if there is none."""
        head = self.checkout.head()
        for branch, tip in self.refs.task_branches(task):
            record = worktree_paths(self.folder, branch).record()
            elsewhere = record is not None and (record.task != task or record.base == tip)
            if not elsewhere and not self.refs.is_ancestor(tip, head) and not self.merging.is_carried(tip, head):
                return tip
        return None

    def branch_off(
        self, request: WorkspaceRequest, tree: str, seq: int, message: str
    ) -> tuple[WorkspaceFacts, Checkpoint]:
        """Keep `tree` as the checkpoint that a fork begins with; return it and the facts of the fork's worktree."""
        self.refs.check_room()
        objects, base = self.worktrees.objects, self.refs.known_commit(request.base)
        commit = CommitId(objects.commit(objects.tree_of(tree), [base], message, WORKBENCH))
        ref = f"refs/agent/{request.session}/{seq}"
        self.refs.move(ref, commit, "", "fork")
        # Opening the fork rebuilds its worktree from this ref, as for any session whose folder is gone.
        self.refs.set(position_ref(request), commit)
        folder = str(worktree_paths(self.folder, request.branch).tree)
        facts = WorkspaceFacts(folder, request.branch, base, objects.tree_of(base))
        return facts, Checkpoint(ref, commit, objects.tree_of(tree))

    def snapshot(self, session: SessionId, unsaved: Mapping[str, bytes], without: Sequence[str]) -> CommitId:
        """Return a commit on HEAD with what the user did not commit, or HEAD if there is nothing."""
        scratch = self.folder / "private"
        try:
            make_directories(scratch)
        except OSError as error:
            raise storage_error(f"{scratch} cannot be created", error) from error
        return self.checkout.snapshot(session, scratch, unsaved, without)


def _held_by(session: SessionId) -> str:
    """Return the beginning of a lock's holder text for this session."""
    return f"session {session}, "


@contextmanager
def _holding(folder: Path, task: TaskId, session: SessionId) -> Iterator[None]:
    """Hold the lock of the task; raise `LockedError` that names its holder."""
    lock = _task_lock(folder, task, session)
    try:
        yield
    finally:
        lock.release()


def _task_lock(folder: Path, task: TaskId, session: SessionId) -> FileLock:
    """Return the acquired lock of the task; raise `LockedError` that names the holder."""
    path = lock_path(folder, task)
    try:
        make_directories(path.parent)
        # Worktrees may contain files that only the user can read in the checkout.
        folder.chmod(0o700)
    except OSError as error:
        raise storage_error(f"{path.parent} cannot be created", error) from error
    lock = FileLock(path, f"{_held_by(session)}{describe_holder()}")
    try:
        lock.acquire()
    except LockedError as error:
        raise task_locked(task, error.holder) from error
    return lock
