"""Refs of a session in this repository: what is pushed of them, and what another machine's session brings here."""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from agent_workbench.adapters.git.folder_content import FolderContent
from agent_workbench.adapters.git.folders import linked_names
from agent_workbench.adapters.git.plumbing import Plumbing
from agent_workbench.adapters.git.refs import BRANCH_PREFIX, branch_refs
from agent_workbench.adapters.git.stored_commits import audit_ref, read_commit
from agent_workbench.adapters.git.tree_writer import TreeWriter
from agent_workbench.adapters.git.working_trees.checkpoints import Checkpoints
from agent_workbench.adapters.git.working_trees.leftovers import Orphans
from agent_workbench.adapters.git.working_trees.lifecycle import (
    WorktreePaths,
    WorktreeRecord,
    Worktrees,
    worktree_paths,
)
from agent_workbench.adapters.git.working_trees.user_checkout import Checkout
from agent_workbench.core.errors import JournalError, WorkspaceError
from agent_workbench.core.history.git_objects import GitObjects, TaskBranch
from agent_workbench.core.history.journal_proof import read_trailers
from agent_workbench.core.ids import SESSION_ID, TASK_ID, CommitId, SessionId, TaskId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.repo.workspace import WorkspaceFacts, WorkspaceRequest

_HEADS = "refs/heads/"
_CHECKPOINT = re.compile(r"refs/agent/([^/]+)/(0|[1-9][0-9]{0,11})")
_BRANCH = re.compile(r"agent/[A-Za-z][A-Za-z0-9._-]{0,80}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Refs that machines share; what else somebody puts below the session stays where it is.
_SHARED = re.compile(r"(?:0|[1-9][0-9]{0,11}|base|at/[A-Za-z][A-Za-z0-9._-]{0,80}|withdrawn/[0-9a-f]{12})")

TaskLock = Callable[[TaskId, SessionId], AbstractContextManager[object]]
"""Holds the lock of a task; raises `LockedError` that names the holder."""


class LocalRefs:
    """Refs and worktrees of sessions in one repository. Its methods block."""

    def __init__(
        self, worktrees: Worktrees, checkout: Checkout, orphans: Orphans, folder: Path, lock: TaskLock
    ) -> None:
        self._worktrees, self._refs, self._objects = worktrees, worktrees.refs, worktrees.objects
        self._checkout, self._orphans, self._folder, self._lock = checkout, orphans, folder, lock

    def commit(self, ref: str) -> CommitId | None:
        """Return the commit of a ref, None if there is none."""
        return self._refs.commit(ref)

    def set_audit(self, session: SessionId, commit: str | None) -> None:
        """Set the audit ref to a commit of the remote, or one that it has now."""
        if commit is not None:
            self._set(audit_ref(session), commit)

    def _set(self, ref: str, commit: str) -> None:
        # A symbolic ref of this name would lead to the user's branch.
        self._objects.plumbing.run("update-ref", "--no-deref", ref, commit)

    def wanted(self, session: SessionId, there: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the refs that the remote is to have of a session, and sentences about what is left out.

        `there` are the remote's refs. The tip of each branch is also below the session's own refs, for a branch of that
        name may be somebody else's at the remote.
        """
        prefix = f"refs/agent/{session}/"
        found = {ref: oid for ref, oid in self._refs.below(prefix) if _SHARED.fullmatch(ref.removeprefix(prefix))}
        notes = []
        for branch, own in self._branches(session).items():
            tip = self._refs.branch_tip(branch)
            if tip is None:
                continue
            shared = branch_refs(session, branch, tip)
            other = there.get(_HEADS + branch)
            if other is not None and other != tip and other not in own and not self._is_older(other, tip):
                del shared[_HEADS + branch]
                notes.append(f"the remote's branch {branch} has other work ({other[:10]}) and stays as it is")
            found |= shared
        return found, tuple(notes)

    def _branches(self, session: SessionId) -> dict[str, set[str]]:
        """Return the branches of a session with the commits that it put there.

        A branch whose worktree is gone is known by the trailer of its commit.
        """
        found: dict[str, set[str]] = {}
        for _, record in self._orphans.recorded_worktrees():
            if record.session == session:
                found[record.branch] = {record.base, *record.commits}
        listed = self._refs.below(f"{_HEADS}{BRANCH_PREFIX}")
        for ref, oid in listed:
            branch = ref.removeprefix(_HEADS)
            if branch not in found and _BRANCH.fullmatch(branch) and self._is_of(session, oid):
                found[branch] = set()
        return found

    def _is_of(self, session: SessionId, commit: str) -> bool:
        facts = read_commit(self._objects.plumbing, self._objects.algorithm, commit)
        anchors = read_trailers(facts.commit, facts.message).anchors if facts is not None else ()
        return any(each.session == session for each in anchors)

    def _is_older(self, older: str, newer: str) -> bool:
        return self._refs.commit(older) is not None and self._refs.is_ancestor(older, newer)

    def of_parents(self, session: SessionId, objects: GitObjects) -> tuple[str, ...]:
        """Return patterns for the checkpoints of other sessions that a fork's journal names."""
        named = {match[1] for ref in objects.checkpoints if (match := _CHECKPOINT.fullmatch(ref)) is not None}
        return tuple(f"refs/agent/{each}/*" for each in sorted(named - {session}) if SESSION_ID.fullmatch(each))

    def check(
        self, session: SessionId, objects: GitObjects, refs: Mapping[str, str], plumbing: Plumbing, remote: str
    ) -> None:
        """Raise `JournalError` unless `plumbing` has each commit that the journal names, under the ref it names."""
        prefix = f"refs/agent/{session}/"
        for ref, commit in objects.checkpoints.items():
            if not _CHECKPOINT.fullmatch(ref) or not _COMMIT.fullmatch(commit):
                raise JournalError(f"the journal of session {session} has {shown(ref)}, which is no checkpoint")
            if ref.startswith(prefix) and refs.get(ref, commit) != commit:
                raise JournalError(
                    f"{ref} is {refs[ref][:10]} at {remote}, and the journal has {commit[:10]}",
                    advice="somebody changed it there; nothing was taken from the remote",
                )
        named = {commit: ref for ref, commit in objects.checkpoints.items() if ref.startswith(prefix)}
        for branch, task in objects.branches.items():
            if not _BRANCH.fullmatch(branch) or not TASK_ID.fullmatch(task.task):
                raise JournalError(f"the journal of session {session} has {shown(branch)}, which is no task's branch")
            named |= dict.fromkeys((task.base, task.position, *([task.tip] if task.tip else [])), branch)
        found = plumbing.resolve(*(f"{commit}^{{commit}}" for commit in named))
        for (commit, name), there in zip(named.items(), found, strict=True):
            if there != commit:
                raise JournalError(
                    f"{remote} has no commit {commit[:10]} of {name}, which the journal of session {session} names",
                    advice="it was not pushed, or was removed there; continue on the machine that has it",
                )

    def apply(self, session: SessionId, objects: GitObjects) -> None:
        """Set the refs and branches of a session as its journal names them; their objects are here.

        Raises `WorkspaceError` before anything is set if a branch here has other work, `LockedError` if a process
        here works on one of its tasks.
        """
        branches = list(objects.branches.values())
        for each in branches:
            self._check_branch(session, each)
        prefix = f"refs/agent/{session}/"
        for ref, commit in objects.checkpoints.items():
            if ref.startswith(prefix):
                self._put(session, ref, commit)
        for each in branches:
            with self._lock(each.task, session):
                self._apply_branch(session, each)

    def _check_branch(self, session: SessionId, task: TaskBranch) -> None:
        tip = self._refs.branch_tip(task.branch)
        record = worktree_paths(self._folder, task.branch).record()
        if record is not None and record.session != session:
            raise WorkspaceError(
                f"{task.branch} is here the work of session {record.session}",
                advice=f"`agent clean {task.branch}` removes it, if you no longer need it; or continue elsewhere",
            )
        newer = task.tip is not None and task.tip != task.base and tip is not None and self._is_older(task.tip, tip)
        if tip is None or newer or self._is_own(task, tip, record):
            return
        raise WorkspaceError(
            f"the branch {task.branch} already exists here with other work ({tip[:10]})",
            advice=f"inspect it with `git log {task.branch}`; delete or rename it, and try again",
        )

    @staticmethod
    def _is_own(task: TaskBranch, tip: str, record: WorktreeRecord | None) -> bool:
        return tip in {task.base, task.tip, *task.commits, *(record.commits if record is not None else ())}

    def _apply_branch(self, session: SessionId, task: TaskBranch) -> None:
        paths = worktree_paths(self._folder, task.branch)
        record = paths.record()
        at = f"refs/agent/{session}/at/{task.branch.removeprefix(BRANCH_PREFIX)}"
        position = self._refs.commit(at)
        same = position == task.position or (position is None and task.position == task.base)
        if record is not None and record.ready and not same:
            self._set_aside(session, task, paths, position or task.base)
        known = record.commits if record is not None else ()
        commits = tuple(dict.fromkeys((*known, *task.commits)))
        if record is None or not same or commits != known:
            ready = record is not None and record.ready and same  # another one is rebuilt when it is opened
            paths.write_record(WorktreeRecord(session, task.task, task.branch, task.base, ready, commits))
        if not same:
            self._put(session, at, task.position)
        tip = self._refs.branch_tip(task.branch)
        if task.tip not in {None, task.base, tip} and self._may_move(task, paths, tip):
            self._put(session, _HEADS + task.branch, task.tip or "")

    def _may_move(self, task: TaskBranch, paths: WorktreePaths, tip: CommitId | None) -> bool:
        """Return True if the branch may be set: it has nothing newer, and nobody has it checked out."""
        if tip is not None and task.tip is not None and self._is_older(task.tip, tip):
            return False
        git_folder = self._worktrees.find_git_folder(paths)
        if holder := self._checkout.holder_of(task.branch, besides=git_folder):
            raise WorkspaceError(
                f"the branch {task.branch} is checked out in {shown(holder)}, so it cannot be set to {task.tip}",
                advice="check out another branch there, and try again",
            )
        return True

    def _put(self, session: SessionId, ref: str, commit: str) -> None:
        """Set a ref; what it was is kept below `withdrawn/`, unless the new commit has it."""
        before = self._refs.commit(ref)
        if before == commit:
            return
        if before is not None and not self._is_older(before, commit):
            self._set(f"refs/agent/{session}/withdrawn/{before[:12]}", before)
        self._set(ref, commit)

    def _set_aside(self, session: SessionId, task: TaskBranch, paths: WorktreePaths, position: CommitId) -> None:
        """Keep what a worktree of the session has here beyond its last checkpoint; it is rebuilt when it is opened."""
        if paths.tree.is_symlink() or not paths.tree.is_dir():
            return
        tree = self._objects.tree_of(position)
        links = linked_names(str(paths.tree), self._checkout.paths.root)
        facts = WorkspaceFacts(str(paths.tree), task.branch, task.base, tree, links)
        request = WorkspaceRequest(session, task.task, task.branch, task.base)
        content = FolderContent(self._objects, facts.path, tree, links)
        writer = TreeWriter(self._objects, facts.path, paths.scratch)
        stored = Checkpoints(self._worktrees, self._objects.plumbing, paths, facts, content, writer, request, position)
        stored.set_aside(f"Files of {task.branch} on this machine when the session was continued elsewhere")
