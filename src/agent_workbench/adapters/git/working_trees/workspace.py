"""The port `Workspace` on a git worktree: its files read, changed, compared and restored, one call at a time."""

import asyncio
import posixpath
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import ParamSpec, TypeVar

from agent_workbench.adapters.git.folder_content import FolderContent, Rights
from agent_workbench.adapters.git.folders import check_inside, parents_of, read_file, read_files
from agent_workbench.adapters.git.objects import (
    EXECUTABLE,
    GITLINK,
    LINK,
    MAX_FILE_BYTES,
    REGULAR,
    GitObjects,
    TreeDifference,
    TreeEntry,
    changes_between,
    file_change,
)
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.refs import position_ref
from agent_workbench.adapters.git.stored_commits import past_commits
from agent_workbench.adapters.git.tree_writer import TreeWriter
from agent_workbench.adapters.git.working_trees.checkpoints import Checkpoints
from agent_workbench.adapters.git.working_trees.lifecycle import WorktreePaths, Worktrees
from agent_workbench.adapters.git.write_transaction import WriteTransaction
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.patch.paths import shown
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


class WorktreeFiles:
    """Files of one worktree; `core.ports.workspace.Workspace` describes the methods. Blocking."""

    def __init__(self, objects: GitObjects, content: FolderContent, writer: TreeWriter, paths: WorktreePaths) -> None:
        self._objects, self._content, self._writer, self._paths = objects, content, writer, paths
        self._root = content.root

    def names(self) -> tuple[str, ...]:
        """Return all files and links, sorted, without submodules."""
        return tuple(self._content.names())

    def read(self, path: str) -> FileContent | None:
        """Return a regular file's content."""
        return read_file(self._root, path)

    def links(self, tree: str) -> dict[str, str]:
        """Return the links of `tree` that lead to a path in it, each with that path."""
        links = {path: entry for path, entry in self._objects.entries(tree).items() if entry.mode == LINK}
        targets = self._objects.contents(entry.oid for entry in links.values())
        found = {}
        for path, entry in links.items():
            target = targets[entry.oid].decode("utf-8", "surrogateescape")
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not to.startswith(("/", "..")):
                found[path] = to
        return found

    def write(self, changes: Sequence[FileChange], parent_tree: str) -> str:
        """Make all the changes or none, and return the tree of `parent_tree` with the changes."""
        for change in changes:
            self._check_no_submodule(change.path)
        writing = WriteTransaction(self._root, self._paths.pending)
        writing.roll_back()
        staged = writing.stage(changes)
        try:
            oids = iter(self._objects.write_blobs([each for each in staged if each is not None]))
            updates = {
                change.path: None
                if change.after is None
                else TreeEntry(EXECUTABLE if change.after.executable else REGULAR, next(oids))
                for change in changes
            }
            tree = self._objects.build(parent_tree, updates, self._paths.scratch)
        except BaseException:
            writing.finish()
            raise
        writing.apply()
        writing.finish()
        self._content.track({path: entry for path, entry in updates.items() if entry is not None})
        self._content.approve(tree)
        return tree

    def _check_no_submodule(self, path: str) -> None:
        for each in (*parents_of(path), path):
            entry = self._content.tracked.get(each)
            if entry is not None and entry.mode == GITLINK:
                raise WorkspaceError(f"{shown(path)} is in the submodule {shown(each)}; submodules are not changed")

    def unapproved_changes(self, tree: str) -> tuple[FileChange, ...]:
        """Return the changes of the files since `tree`. Links, submodules and too large files have no content."""
        self._content.approve(tree)
        approved = self._objects.entries(tree)
        there = self._content.entries_of(self._content.scan(approved), approved, untracked=False)
        found = [
            TreeDifference(path, approved.get(path), there.get(path))
            for path in sorted(approved.keys() | there.keys())
            if approved.get(path) != there.get(path) and not self._content.is_linked(path)
        ]
        before = self._objects.files(each.before for each in found)
        after = self._read_all(found)
        return tuple(file_change(each, before, after.get(each.path)) for each in found)

    def _read_all(self, differences: Iterable[TreeDifference]) -> dict[str, FileContent]:
        found, left = {}, MAX_FILE_BYTES
        for each in differences:
            if each.after is None or not self._content.is_file_up_to(each.path, left):
                continue
            # A file that cannot be read cannot be approved either.
            with suppress(WorkspaceError):
                content = read_file(self._root, each.path)
                if content is not None:
                    found[each.path] = content
                    left -= len(content.data)
        return found

    def reset(self, tree: str) -> Reset:
        """Reset the files to `tree`; files that its rules ignore stay, bytecode goes."""
        self._content.approve(tree)
        approved = self._objects.entries(tree)
        found = self._content.scan(approved, Rights.CHANGE)
        there = self._content.entries_of(found, approved, untracked=False)
        target = {path: entry for path, entry in approved.items() if not self._content.is_linked(path)}
        return self._writer.replace(found, there, target)

    def changes(self, base: str, tree: str) -> tuple[FileChange, ...]:
        """Return the changes from the tree `base` to `tree`."""
        return changes_between(self._objects, base, tree)

    def put_back(self, tree: str, paths: Collection[str]) -> None:
        """Restore these paths to their content in `tree`."""
        self._content.approve(tree)
        for path in paths:
            check_inside(path)
            if self._content.is_linked(path):
                raise WorkspaceError(f"{shown(path)} is a link from workspace.link and cannot be restored")
        approved = self._objects.entries(tree)
        self._writer.remove(path for path in paths if path not in approved)
        self._writer.write({path: approved[path] for path in paths if path in approved})
