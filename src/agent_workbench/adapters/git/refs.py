"""The branches and checkpoints that belong to the workbench: `refs/heads/agent/…` and `refs/agent/…`."""

import re

from agent_workbench.adapters.git.plumbing import Plumbing, failure
from agent_workbench.adapters.git.sites import BRANCH_PREFIX
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.workspace import WorkspaceRequest

_HEADS = "refs/heads/"


class Refs:
    """References of one repository; they are moved only from what they are known to be."""

    def __init__(self, plumbing: Plumbing, no_object: str) -> None:
        self._plumbing = plumbing
        self._no_object = no_object

    def commit(self, revision: str) -> CommitId | None:
        """Return the commit a ref or a commit's name stands for, None where there is none."""
        outcome = self._plumbing.attempt("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        return None if outcome.status else CommitId(outcome.out.decode().strip())

    def known_commit(self, revision: str) -> CommitId:
        """Return the commit; raise `WorkspaceError` where there is none."""
        found = None if revision.startswith("-") else self.commit(revision)
        if found is None:
            raise WorkspaceError(f"{revision} is not a commit of this repository")
        return found

    def branch_tip(self, branch: str) -> CommitId | None:
        """Return the commit a branch (short name) is at, None where there is no such branch."""
        return self.commit(_HEADS + branch)

    def move(self, ref: str, new: str, old: str, why: str) -> None:
        """Set a full ref to `new` if it is at `old` (empty: does not exist), or raise `WorkspaceError`."""
        outcome = self._plumbing.attempt("update-ref", "-m", f"agent: {why}", ref, new, old or self._no_object)
        if not outcome.status:
            return
        now = self.commit(ref)
        if now != (old or None):
            raise WorkspaceError(
                f"{ref} was moved by somebody else: it is at {now or 'nothing'}, not at {old or 'nothing'}",
                advice="see who moved it with `git reflog`; put it back, or give the task another session",
            )
        raise failure("update-ref", outcome)

    def set(self, ref: str, new: str) -> None:
        """Set a full ref of ours, whatever it is at."""
        self._plumbing.run("update-ref", ref, new)

    def delete_branch(self, branch: str, at: str) -> None:
        """Delete a branch if it is at this commit still."""
        self._plumbing.attempt("update-ref", "-d", f"{_HEADS}{branch}", at)

    def delete(self, ref: str) -> None:
        """Delete a full ref of ours, if it is there."""
        self._plumbing.run("update-ref", "-d", ref)

    def standing(self, request: WorkspaceRequest) -> CommitId | None:
        """Return the checkpoint that the work on a branch stands at, None where none grew from the base."""
        found = self.commit(standing_ref(request))
        return found if found is not None and self.is_ancestor(request.base, found) else None

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether `newer` contains `older`."""
        outcome = self._plumbing.attempt("merge-base", "--is-ancestor", older, newer)
        if outcome.status not in {0, 1}:
            raise failure("merge-base", outcome)
        return outcome.status == 0

    def check_room(self) -> None:
        """Raise `WorkspaceError` when a branch named `agent` leaves no room for `agent/…`."""
        if self.branch_tip(BRANCH_PREFIX.rstrip("/")) is not None:
            raise WorkspaceError(
                "there is a branch named agent, and git cannot have agent/<task> beside it",
                advice="rename it: git branch -m agent <another name>",
            )

    def is_taken(self, branch: str) -> bool:
        """Return whether the branch exists, or others below its name do."""
        out = self._plumbing.line("for-each-ref", "--format=%(refname)", _HEADS + branch, f"{_HEADS}{branch}/")
        return bool(out)

    def task_branches(self, task: TaskId) -> list[tuple[str, CommitId]]:
        """Return the task's branches and their tips, the newest commit first."""
        out = self._plumbing.line(
            *("for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(refname)", f"{_HEADS}{BRANCH_PREFIX}")
        )
        shape = re.compile(re.escape(f"{BRANCH_PREFIX}{task}") + "(?:-[a-z2-7]{6})?")
        pairs = [line.partition(" ") for line in out.split("\n") if line]
        found = [(name.removeprefix(_HEADS), CommitId(oid)) for oid, _, name in pairs]
        return [(branch, oid) for branch, oid in found if shape.fullmatch(branch)]


def standing_ref(request: WorkspaceRequest) -> str:
    """Return the ref that follows a session's work on a branch: its newest checkpoint, or what was last restored."""
    return f"refs/agent/{request.session}/at/{request.branch.removeprefix(BRANCH_PREFIX)}"
