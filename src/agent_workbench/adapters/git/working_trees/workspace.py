"""The port `Workspace` on a git worktree: blocking operations run in threads, one at a time."""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ParamSpec, TypeVar

from agent_workbench.adapters.git.folder_content import FolderContent
from agent_workbench.adapters.git.folders import read_files
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.refs import position_ref
from agent_workbench.adapters.git.stored_commits import past_commits
from agent_workbench.adapters.git.tree_writer import TreeWriter
from agent_workbench.adapters.git.working_trees.checkpoints import Checkpoints
from agent_workbench.adapters.git.working_trees.lifecycle import Worktrees
from agent_workbench.adapters.git.working_trees.paths import WorktreePaths
from agent_workbench.adapters.git.working_trees.worktree_files import WorktreeFiles
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.core.repo.workspace import Checkpoint, Reset, WorkspaceFacts, WorkspaceRequest
from agent_workbench.system.locks import FileLock

P = ParamSpec("P")
T = TypeVar("T")


class GitWorkspace:
    """A worktree held by one session until `release`.

    Symbolic links, submodules and files over 200 MB cannot be approved: where they differ, `unapproved_changes` and
    `changes` show no content on that side. The ignore rules are those of the tree passed last, at first of the tree in
    `facts`.
    """

    def __init__(
        self,
        worktrees: Worktrees,
        plumbing: Plumbing,
        paths: WorktreePaths,
        facts: WorkspaceFacts,
        request: WorkspaceRequest,
        position: CommitId,
        lock: FileLock,
    ) -> None:
        """Take over a prepared worktree, the commit of the work in it, and its lock. Blocks."""
        self._worktrees, self._paths, self._facts, self._lock = worktrees, paths, facts, lock
        self._plumbing = plumbing
        content = FolderContent(worktrees.objects, facts.path, facts.tree, facts.linked)
        writer = TreeWriter(worktrees.objects, facts.path, paths.scratch)
        self._files = WorktreeFiles(worktrees.objects, content, writer, paths)
        self._checkpoints = Checkpoints(worktrees, plumbing, paths, facts, content, writer, request, position)
        self._position_ref = position_ref(request)
        self._busy = threading.Lock()

    async def _do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def alone() -> T:
            with self._busy:
                return work(*args, **kwargs)

        return await asyncio.to_thread(alone)

    @property
    def facts(self) -> WorkspaceFacts:
        return self._facts

    @property
    def root(self) -> str:
        return self._facts.path

    async def list_files(self) -> tuple[str, ...]:
        return await self._do(self._files.names)

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        return await asyncio.to_thread(read_files, self._facts.path, paths)

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        return await asyncio.to_thread(past_commits, self._plumbing, self._facts.base, limit, until)

    async def read(self, path: str) -> FileContent | None:
        return await self._do(self._files.read, path)

    async def links(self) -> Mapping[str, str]:
        return await self._do(self._files.links, self._facts.tree)

    async def write(self, changes: Sequence[FileChange], parent_tree: str) -> str:
        return await self._do(self._files.write, changes, parent_tree)

    async def unapproved_changes(self, tree: str) -> tuple[FileChange, ...]:
        return await self._do(self._files.unapproved_changes, tree)

    async def put_back(self, tree: str, paths: Collection[str]) -> None:
        await self._do(self._files.put_back, tree, paths)

    async def reset(self, tree: str) -> Reset:
        return await self._do(self._reset, tree)

    def _reset(self, tree: str) -> Reset:
        self._worktrees.repair(self._paths)
        found = self._files.reset(tree)
        # Last, because the reset removes obstacles in the path of a link.
        self._worktrees.restore_links(self._paths, self._facts.linked)
        return found

    async def checkpoint(self, session: SessionId, seq: int, message: str) -> Checkpoint:
        return await self._do(self._checkpoints.checkpoint, session, seq, message)

    async def restore(self, commit: CommitId) -> None:
        await self._do(self._checkpoints.restore, commit)

    async def commit(self, tree: str, message: str) -> CommitId:
        return await self._do(self._checkpoints.commit, tree, message)

    async def withdraw(self) -> None:
        await self._do(self._checkpoints.withdraw)

    async def changes(self, tree: str) -> tuple[FileChange, ...]:
        return await self._do(self._files.changes, self._facts.base, tree)

    async def release(self, keep: bool) -> None:
        releasing = asyncio.ensure_future(self._do(self._release, keep))
        try:
            await asyncio.shield(releasing)
        except asyncio.CancelledError:
            # An unfinished release would keep the task's lock.
            await asyncio.wait({releasing})
            raise

    def _release(self, keep: bool) -> None:
        try:
            if not keep:
                self._worktrees.refs.delete(self._position_ref)
                self._worktrees.remove(self._paths, self._facts.branch, self._facts.base)
        finally:
            self._lock.release()
