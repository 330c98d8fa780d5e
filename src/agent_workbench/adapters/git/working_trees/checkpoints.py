"""Checkpoints of a task's worktree, their restoration, and the commit of the approved tree."""

import tempfile
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.git.folder_content import FolderContent, Rights
from agent_workbench.adapters.git.objects import GITLINK, WORKBENCH, TreeEntry, commit_author
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.refs import position_ref
from agent_workbench.adapters.git.tree_writer import TreeWriter
from agent_workbench.adapters.git.working_trees.lifecycle import WorktreePaths, Worktrees
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.repo.workspace import Checkpoint, WorkspaceFacts, WorkspaceRequest
from agent_workbench.system.atomic_files import storage_error


class Checkpoints:
    """Checkpoints and commits of one worktree; `core.ports.workspace.Workspace` describes the methods. Blocking."""

    def __init__(
        self,
        worktrees: Worktrees,
        plumbing: Plumbing,
        paths: WorktreePaths,
        facts: WorkspaceFacts,
        content: FolderContent,
        writer: TreeWriter,
        request: WorkspaceRequest,
        position: CommitId,
    ) -> None:
        self._worktrees, self._plumbing, self._paths, self._facts = worktrees, plumbing, paths, facts
        self._content, self._writer = content, writer
        self._objects, self._refs = worktrees.objects, worktrees.refs
        self._base_entries = self._objects.entries(facts.base)
        self._session = request.session
        self._position_ref = position_ref(request)
        self._set_position(position)

    def _set_position(self, commit: CommitId) -> None:
        """Set the commit that the next checkpoint follows and is compared with."""
        self._last = commit
        self._last_tree = self._objects.tree_of(commit)
        self._last_entries = self._objects.entries(self._last_tree)
        self._content.track(self._last_entries | self._base_entries)

    def checkpoint(self, session: SessionId, seq: int, message: str) -> Checkpoint:
        """Store the whole content as a checkpoint; only changes since the last one cost space."""
        tree, entries = self._stored_content()
        ref = f"refs/agent/{session}/{seq}"
        commit = self._keep(ref, tree, message)
        self._last, self._last_tree, self._last_entries = commit, tree, entries
        self._content.track(self._last_entries)
        return Checkpoint(ref, commit, tree)

    def set_aside(self, message: str) -> CommitId | None:
        """Store content that is in no commit below `refs/agent/<session>/withdrawn/`; None if there is none."""
        tree, _ = self._stored_content()
        if tree == self._last_tree:
            return None
        commit = CommitId(self._objects.commit(tree, [self._last], message, WORKBENCH))
        self._refs.set(f"refs/agent/{self._session}/withdrawn/{commit[:12]}", commit)
        return commit

    def _stored_content(self) -> tuple[str, dict[str, TreeEntry]]:
        """Return the tree of the whole content, stored, and its entries."""
        now = self._readable(self._content.entries(self._last_entries))
        updates: dict[str, TreeEntry | None] = dict.fromkeys(self._last_entries.keys() - now.keys())
        changed = {path: entry for path, entry in now.items() if self._last_entries.get(path) != entry}
        stored = self._store(changed)
        return self._objects.build(self._last_tree, updates | stored, self._paths.scratch), now | stored

    def _readable(self, now: dict[str, TreeEntry]) -> dict[str, TreeEntry]:
        """Return the storable entries; unreadable and too large files keep their entry of the last checkpoint."""
        kept = {path: self._last_entries.get(path) if _is_unread(entry) else entry for path, entry in now.items()}
        return {path: entry for path, entry in kept.items() if entry is not None}

    def _keep(self, ref: str, tree: str, message: str) -> CommitId:
        """Create `ref` as a checkpoint of `tree`, or return the existing one; raise if that has another tree.

        An approved tree that differs is a commit before it: another machine needs that tree, and git keeps it.
        """
        parents, approved = [self._last], self._content.approved
        if approved not in {tree, self._last_tree}:
            text = f"Approved content at {ref}"
            parents.append(CommitId(self._objects.commit(approved, [self._last], text, WORKBENCH)))
        commit = CommitId(self._objects.commit(tree, parents, message, WORKBENCH))
        try:
            self._refs.create(ref, commit, "checkpoint", self._position_ref)
        except WorkspaceError:
            # A crash may have come between an earlier creation and its record in the journal.
            existing = self._refs.commit(ref)
            if existing is None or self._objects.tree_of(existing) != tree:
                raise
            self._refs.set(self._position_ref, existing)
            return existing
        return commit

    def _store(self, changed: dict[str, TreeEntry]) -> dict[str, TreeEntry]:
        """Store the content of these paths and return the stored entries."""
        known = {entry.oid for entry in self._content.tracked.values()}
        new = {path: entry for path, entry in changed.items() if entry.oid not in known and entry.mode != GITLINK}
        if not new:
            return changed
        try:
            with tempfile.TemporaryDirectory(dir=self._paths.scratch) as folder:
                copies = [Path(folder) / str(number) for number in range(len(new))]
                for (path, entry), copy in zip(new.items(), copies, strict=True):
                    self._content.copy(path, entry, copy)
                oids = self._objects.write_blobs(copies)
        except OSError as error:
            raise storage_error("the checkpoint could not be stored", error) from error
        return changed | {
            path: TreeEntry(entry.mode, oid) for (path, entry), oid in zip(new.items(), oids, strict=True)
        }

    def restore(self, commit: CommitId) -> None:
        """Restore the files of `commit`; ignored files stay unless they are in the way."""
        target = {
            path: entry for path, entry in self._objects.entries(commit).items() if not self._content.is_linked(path)
        }
        found = self._content.scan(target, Rights.CHANGE)
        self._writer.replace(found, self._content.entries_of(found, target, untracked=False), target)
        self._content.tracked.clear()
        self._set_position(self._refs.known_commit(commit))
        self._refs.set(self._position_ref, self._last)

    def commit(self, tree: str, message: str) -> CommitId:
        """Commit `tree` on top of the base, in the user's name.

        An earlier commit of the workbench on this branch, whose outcome may be unrecorded, is replaced.
        """
        branch, base = self._facts.branch, self._facts.base
        record, tip = self._paths.record(), self._refs.branch_tip(branch)
        if record is None:
            raise WorkspaceError(f"the record of the worktree is missing: {self._paths.private}")
        old = tip if tip is not None and tip in record.commits else base
        new = self._objects.commit(self._objects.tree_of(tree), [base], message, commit_author(self._plumbing))
        self._paths.write_record(replace(record, commits=(*record.commits, new)))
        self._refs.move(f"refs/heads/{branch}", new, old, f"commit {self._paths.tree.name}")
        self._worktrees.align_index(self._paths, new)
        return CommitId(new)

    def withdraw(self) -> None:
        """Delete the branch unless the user committed to it; a commit of the workbench is kept under `refs/agent/`.

        The worktree stays, at the base.
        """
        branch, base = self._facts.branch, self._facts.base
        record, tip = self._paths.record(), self._refs.branch_tip(branch)
        if record is None or tip is None or tip not in {base, *record.commits}:
            return
        if tip != base:
            self._refs.set(f"refs/agent/{self._session}/withdrawn/{tip[:12]}", tip)
        self._worktrees.detach(self._paths, branch, base)
        self._refs.delete_branch(branch, tip)
        self._worktrees.align_index(self._paths, base)


def _is_unread(entry: TreeEntry) -> bool:
    return not entry.oid.strip("0")
