"""The branches and checkpoints that belong to the workbench: `refs/heads/agent/…` and `refs/agent/…`."""

import re
from typing import NamedTuple

from agent_workbench.adapters.git.commands.plumbing import Outcome, Plumbing, failure
from agent_workbench.adapters.git.worktree.paths import BRANCH_PREFIX
from agent_workbench.core.errors import WorkbenchError, WorkspaceError
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.workspace import WorkspaceRequest

_HEADS = "refs/heads/"
# The branch that leaves no room for ours.
_ROOM = _HEADS + BRANCH_PREFIX.rstrip("/")


class Found(NamedTuple):
    """What is there of a workspace that is asked for.

    `tip` is where its branch is; `last` the checkpoint that the work on it stands at, if that grew from the base.
    """

    base: CommitId
    tip: CommitId | None
    last: CommitId | None


class Refs:
    """References of one repository; they are moved only from what they are known to be."""

    def __init__(self, plumbing: Plumbing, no_object: str) -> None:
        self._plumbing = plumbing
        self._no_object = no_object

    def commit(self, revision: str) -> CommitId | None:
        """Return the commit a ref or a commit's name stands for, None where there is none."""
        return self._commits(revision)[0]

    def _commits(self, *revisions: str) -> list[CommitId | None]:
        found = self._plumbing.resolve(*(f"{revision}^{{commit}}" for revision in revisions))
        return [None if name is None else CommitId(name) for name in found]

    def known_commit(self, revision: str) -> CommitId:
        """Return the commit; raise `WorkspaceError` where there is none."""
        return _known(revision, self.commit(revision))

    def find(self, request: WorkspaceRequest) -> Found:
        """Return what a request for a workspace finds; raise `WorkspaceError` for no such base or no room."""
        revisions = (_ROOM, request.base, _HEADS + request.branch, standing_ref(request))
        in_the_way, base, tip, last = self._commits(*revisions)
        if in_the_way is not None:
            raise _no_room()
        base = _known(request.base, base)
        grown = last is not None and (last == base or self.is_ancestor(base, last))
        return Found(base, tip, last if grown else None)

    def branch_tip(self, branch: str) -> CommitId | None:
        """Return the commit a branch (short name) is at, None where there is no such branch."""
        return self.commit(_HEADS + branch)

    def move(self, ref: str, new: str, old: str, why: str) -> None:
        """Set a full ref to `new` if it is at `old` (empty: does not exist), or raise `WorkspaceError`."""
        outcome = self._plumbing.attempt("update-ref", "-m", f"agent: {why}", ref, new, old or self._no_object)
        if outcome.status:
            raise self._not_moved(outcome, ref, old)

    def create(self, ref: str, new: str, why: str, follower: str) -> None:
        """Make a full ref that is not there yet and set `follower`, one of ours, to the same: both or none.

        Raises `WorkspaceError` where the ref is there.
        """
        both = f"create {ref} {new}\nupdate {follower} {new}\n"
        outcome = self._plumbing.attempt("update-ref", "-m", f"agent: {why}", "--stdin", stdin=both.encode())
        if outcome.status:
            raise self._not_moved(outcome, ref, "")

    def _not_moved(self, outcome: Outcome, ref: str, old: str) -> WorkbenchError:
        """Return why a ref was not moved from `old`: somebody else moved it, or git could not."""
        now = self.commit(ref)
        if now == (old or None):
            return failure("update-ref", outcome)
        return WorkspaceError(
            f"{ref} was moved by somebody else: it is at {now or 'nothing'}, not at {old or 'nothing'}",
            advice="see who moved it with `git reflog`; put it back, or give the task another session",
        )

    def set(self, ref: str, new: str) -> None:
        """Set a full ref of ours, whatever it is at."""
        self._plumbing.run("update-ref", ref, new)

    def delete_branch(self, branch: str, at: str) -> None:
        """Delete a branch if it is at this commit still."""
        self._plumbing.attempt("update-ref", "-d", f"{_HEADS}{branch}", at)

    def delete(self, ref: str) -> None:
        """Delete a full ref of ours, if it is there."""
        self._plumbing.run("update-ref", "-d", ref)

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether `newer` contains `older`."""
        outcome = self._plumbing.attempt("merge-base", "--is-ancestor", older, newer)
        if outcome.status not in {0, 1}:
            raise failure("merge-base", outcome)
        return outcome.status == 0

    def parted(self, one: str, other: str) -> CommitId | None:
        """Return where two histories parted: one of the commits itself where the other contains it, None if nowhere."""
        outcome = self._plumbing.attempt("merge-base", one, other)
        if outcome.status not in {0, 1}:
            raise failure("merge-base", outcome)
        return CommitId(outcome.out.decode().strip()) if outcome.status == 0 else None

    def check_room(self) -> None:
        """Raise `WorkspaceError` when a branch named `agent` leaves no room for `agent/…`."""
        if self.commit(_ROOM) is not None:
            raise _no_room()

    def is_taken(self, branch: str) -> bool:
        """Return whether a branch of ours exists, or others below its name do; raise as `check_room` does."""
        names = self._plumbing.line("for-each-ref", "--format=%(refname)", _ROOM).split("\n")
        if _ROOM in names:
            raise _no_room()
        return any(f"{name}/".startswith(f"{_HEADS}{branch}/") for name in names)

    def own_branches(self) -> list[str]:
        """Return the branches (short names) whose names are the workbench's."""
        out = self._plumbing.line("for-each-ref", "--format=%(refname)", f"{_HEADS}{BRANCH_PREFIX}")
        return [name.removeprefix(_HEADS) for name in out.split("\n") if name]

    def task_branches(self, task: TaskId) -> list[tuple[str, CommitId]]:
        """Return the task's branches and their tips, the newest commit first."""
        out = self._plumbing.line(
            *("for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(refname)", f"{_HEADS}{BRANCH_PREFIX}")
        )
        shape = re.compile(re.escape(f"{BRANCH_PREFIX}{task}") + "(?:-[a-z2-7]{6})?")
        pairs = [line.partition(" ") for line in out.split("\n") if line]
        found = [(name.removeprefix(_HEADS), CommitId(oid)) for oid, _, name in pairs]
        return [(branch, oid) for branch, oid in found if shape.fullmatch(branch)]


def _known(revision: str, found: CommitId | None) -> CommitId:
    if found is None:
        raise WorkspaceError(f"{revision} is not a commit of this repository")
    return found


def _no_room() -> WorkspaceError:
    return WorkspaceError(
        "there is a branch named agent, and git cannot have agent/<task> beside it",
        advice="rename it: git branch -m agent <another name>",
    )


def standing_ref(request: WorkspaceRequest) -> str:
    """Return the ref that follows a session's work on a branch: its newest checkpoint, or what was last restored."""
    return f"refs/agent/{request.session}/at/{request.branch.removeprefix(BRANCH_PREFIX)}"
