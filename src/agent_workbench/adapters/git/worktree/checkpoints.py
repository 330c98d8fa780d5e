"""Keeps the content of a task's worktree as checkpoints, brings it back, and commits what was approved."""

import tempfile
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.git.commands.identity import WORKBENCH, user_identity
from agent_workbench.adapters.git.commands.objects import GITLINK, Entry
from agent_workbench.adapters.git.commands.plumbing import Plumbing
from agent_workbench.adapters.git.commands.refs import standing_ref
from agent_workbench.adapters.git.file_access.content import Content
from agent_workbench.adapters.git.file_access.folder_scan import Rights
from agent_workbench.adapters.git.file_access.tree_writer import TreeWriter
from agent_workbench.adapters.git.worktree.lifecycle import Worktrees
from agent_workbench.adapters.git.worktree.paths import Site
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.workspace import Checkpoint, WorkspaceFacts, WorkspaceRequest
from agent_workbench.system.atomic_files import storage_error


class History:
    """Blocking; one caller at a time. Methods are described at `core.workspace_ports.Workspace`."""

    def __init__(
        self,
        worktrees: Worktrees,
        plumbing: Plumbing,
        site: Site,
        facts: WorkspaceFacts,
        content: Content,
        deposit: TreeWriter,
        request: WorkspaceRequest,
        stands_at: CommitId,
    ) -> None:
        self._worktrees, self._plumbing, self._site, self._facts = worktrees, plumbing, site, facts
        self._content, self._deposit = content, deposit
        self._trees, self._refs = worktrees.trees, worktrees.refs
        self._base_entries = self._trees.entries(facts.base)
        self._session = request.session
        self._standing = standing_ref(request)
        self._stand_at(stands_at)

    def _stand_at(self, commit: CommitId) -> None:
        """Take `commit` for what the next checkpoint follows and is compared with."""
        self._last = commit
        self._last_tree = self._trees.tree_of(commit)
        self._last_entries = self._trees.entries(self._last_tree)
        self._content.track(self._last_entries | self._base_entries)

    def checkpoint(self, session: SessionId, seq: int, message: str) -> Checkpoint:
        """Keep all content; what did not change since the last checkpoint is not stored again."""
        now = self._readable(self._content.entries(self._last_entries))
        updates: dict[str, Entry | None] = dict.fromkeys(self._last_entries.keys() - now.keys())
        changed = {path: entry for path, entry in now.items() if self._last_entries.get(path) != entry}
        stored = self._store(changed)
        tree = self._trees.build(self._last_tree, updates | stored, self._site.scratch)
        ref = f"refs/agent/{session}/{seq}"
        commit = self._keep(ref, tree, message)
        self._last, self._last_tree, self._last_entries = commit, tree, now | stored
        self._content.track(self._last_entries)
        return Checkpoint(ref, commit, tree)

    def _readable(self, now: dict[str, Entry]) -> dict[str, Entry]:
        """Return what can be kept: what cannot be read, or is too large, stays as it was kept last."""
        kept = {path: self._last_entries.get(path) if _is_unread(entry) else entry for path, entry in now.items()}
        return {path: entry for path, entry in kept.items() if entry is not None}

    def _keep(self, ref: str, tree: str, message: str) -> CommitId:
        """Make `ref` a checkpoint of `tree`, or return the one it is already; raise if it is one of something else."""
        commit = CommitId(self._trees.commit(tree, [self._last], message, WORKBENCH))
        try:
            self._refs.create(ref, commit, "checkpoint", self._standing)
        except WorkspaceError:
            # One that was made before may not have been recorded.
            existing = self._refs.commit(ref)
            if existing is None or self._trees.tree_of(existing) != tree:
                raise
            self._refs.set(self._standing, existing)
            return existing
        return commit

    def _store(self, changed: dict[str, Entry]) -> dict[str, Entry]:
        """Store the content of these paths and return their entries as they were stored."""
        known = {entry.oid for entry in self._content.tracked.values()}
        new = {path: entry for path, entry in changed.items() if entry.oid not in known and entry.mode != GITLINK}
        if not new:
            return changed
        try:
            with tempfile.TemporaryDirectory(dir=self._site.scratch) as folder:
                copies = [Path(folder) / str(number) for number in range(len(new))]
                for (path, entry), copy in zip(new.items(), copies, strict=True):
                    self._content.copy(path, entry, copy)
                oids = self._trees.write_blobs(copies)
        except OSError as error:
            raise storage_error("the checkpoint could not be stored", error) from error
        return changed | {path: Entry(entry.mode, oid) for (path, entry), oid in zip(new.items(), oids, strict=True)}

    def restore(self, commit: CommitId) -> None:
        """Make the files those of `commit`; what git ignores stays, unless it is in the way."""
        target = {
            path: entry for path, entry in self._trees.entries(commit).items() if not self._content.is_linked(path)
        }
        found = self._content.survey(target, Rights.CHANGE)
        self._deposit.replace(found, self._content.entries_of(found, target, untracked=False), target)
        self._content.tracked.clear()
        self._stand_at(self._refs.known_commit(commit))
        self._refs.set(self._standing, self._last)

    def commit(self, tree: str, message: str) -> CommitId:
        """Commit `tree` on top of the base, in the user's name.

        A commit that we made on the branch before, and whose outcome may not have been recorded, is replaced.
        """
        branch, base = self._facts.branch, self._facts.base
        note, tip = self._site.note(), self._refs.branch_tip(branch)
        if note is None:
            raise WorkspaceError(f"the notes of the worktree are gone: {self._site.private}")
        old = tip if tip is not None and tip in note.commits else base
        new = self._trees.commit(self._trees.tree_of(tree), [base], message, user_identity(self._plumbing))
        self._site.write_note(replace(note, commits=(*note.commits, new)))
        self._refs.move(f"refs/heads/{branch}", new, old, f"commit {self._site.tree.name}")
        self._worktrees.align_index(self._site, new)
        return CommitId(new)

    def withdraw(self) -> None:
        """Delete the branch unless somebody else has put a commit there; a commit of ours is kept under a ref of ours.

        The worktree stays, at the base.
        """
        branch, base = self._facts.branch, self._facts.base
        note, tip = self._site.note(), self._refs.branch_tip(branch)
        if note is None or tip is None or tip not in {base, *note.commits}:
            return
        if tip != base:
            self._refs.set(f"refs/agent/{self._session}/withdrawn/{tip[:12]}", tip)
        self._worktrees.detach(self._site, branch, base)
        self._refs.delete_branch(branch, tip)
        self._worktrees.align_index(self._site, base)


def _is_unread(entry: Entry) -> bool:
    return not entry.oid.strip("0")
