"""Refs of the workbench: its branches `refs/heads/agent/…` and its checkpoints `refs/agent/…`."""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from agent_workbench.adapters.git.plumbing import GitResult, Plumbing, failure
from agent_workbench.core.errors import WorkbenchError, WorkspaceError
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.repo.workspace import WorkspaceRequest

BRANCH_PREFIX = "agent/"
_HEADS = "refs/heads/"
# A branch of this name makes branches below it impossible.
_ROOM = _HEADS + BRANCH_PREFIX.rstrip("/")


class FoundRefs(NamedTuple):
    """Existing refs of a requested workspace.

    `tip` is the tip of its branch. `last` is the checkpoint of the work on it, if that descends from the base.
    """

    base: CommitId
    tip: CommitId | None
    last: CommitId | None


class Refs:
    """Refs of one repository. A branch moves only from its expected commit."""

    def __init__(self, plumbing: Plumbing, no_object: str) -> None:
        self._plumbing = plumbing
        self._no_object = no_object

    def commit(self, revision: str) -> CommitId | None:
        """Return the commit of a revision, None if there is none."""
        return self._commits(revision)[0]

    def _commits(self, *revisions: str) -> list[CommitId | None]:
        found = self._plumbing.resolve(*(f"{revision}^{{commit}}" for revision in revisions))
        return [None if name is None else CommitId(name) for name in found]

    def known_commit(self, revision: str) -> CommitId:
        """Return the commit of a revision; raise `WorkspaceError` if there is none."""
        return _known(revision, self.commit(revision))

    def find(self, request: WorkspaceRequest) -> FoundRefs:
        """Return the existing refs for a workspace; raise `WorkspaceError` for an unknown base or a branch `agent`."""
        revisions = (_ROOM, request.base, _HEADS + request.branch, position_ref(request))
        in_the_way, base, tip, last = self._commits(*revisions)
        if in_the_way is not None:
            raise _no_room()
        base = _known(request.base, base)
        grown = last is not None and (last == base or self.is_ancestor(base, last))
        return FoundRefs(base, tip, last if grown else None)

    def branch_tip(self, branch: str) -> CommitId | None:
        """Return the tip of a branch (short name), None if there is no such branch."""
        return self.commit(_HEADS + branch)

    def move(self, ref: str, new: str, old: str, why: str) -> None:
        """Move a ref from `old` (empty: it does not exist) to `new`; raise `WorkspaceError` if it is elsewhere."""
        result = self._plumbing.attempt("update-ref", "-m", f"agent: {why}", ref, new, old or self._no_object)
        if result.status:
            raise self._not_moved(result, ref, old)

    def create(self, ref: str, new: str, why: str, follower: str) -> None:
        """Create a ref and set `follower`, a ref of the workbench, to the same commit: both or none.

        Raises `WorkspaceError` if the ref exists.
        """
        both = f"create {ref} {new}\nupdate {follower} {new}\n"
        result = self._plumbing.attempt("update-ref", "-m", f"agent: {why}", "--stdin", stdin=both.encode())
        if result.status:
            raise self._not_moved(result, ref, "")

    def _not_moved(self, result: GitResult, ref: str, old: str) -> WorkbenchError:
        """Return the error for a ref that could not be moved from `old`."""
        now = self.commit(ref)
        if now == (old or None):
            return failure("update-ref", result)
        return WorkspaceError(
            f"{ref} was moved by another process: it is at {now or 'no commit'}, expected {old or 'no commit'}",
            advice="`git reflog` shows the move; move it back, or use another session for the task",
        )

    def set(self, ref: str, new: str) -> None:
        """Set a ref of the workbench, wherever it is."""
        self._plumbing.run("update-ref", ref, new)

    def delete_branch(self, branch: str, at: str) -> None:
        """Delete a branch if its tip is still this commit."""
        self._plumbing.attempt("update-ref", "-d", f"{_HEADS}{branch}", at)

    def delete(self, ref: str) -> None:
        """Delete a ref of the workbench, if it exists."""
        self._plumbing.run("update-ref", "-d", ref)

    def delete_all(self, refs: Mapping[str, str]) -> None:
        """Delete refs of the workbench that still have these objects: all of them or none.

        Raises `WorkspaceError` if one of them moved.
        """
        deletions = "".join(f"delete {ref}\0{oid}\0" for ref, oid in refs.items())
        result = self._plumbing.attempt("update-ref", "-z", "--stdin", stdin=os.fsencode(deletions))
        if result.status:
            raise failure("update-ref", result)

    def below(self, prefix: str) -> list[tuple[str, str]]:
        """Return the refs below a prefix that ends in a slash, each with its object."""
        out = os.fsdecode(self._plumbing.run("for-each-ref", "--format=%(objectname) %(refname)", prefix))
        return [(ref, oid) for oid, _, ref in (line.partition(" ") for line in out.split("\n") if line)]

    def count(self, older: str, newer: str) -> int:
        """Return the number of commits of `newer` that `older` lacks, 0 if `older` is gone."""
        out = self._plumbing.attempt("rev-list", "--count", f"{older}..{newer}").out.strip()
        return int(out) if out.isdigit() else 0

    def disk_usage(self, refs: Mapping[str, str]) -> int:
        """Return the bytes of the objects that only these refs reach, 0 if git is too old to tell."""
        others = [oid for ref, oid in (*self.below("refs/"), ("HEAD", "HEAD")) if ref not in refs]
        given = "".join(f"{each}\n" for each in (*refs.values(), *(f"^{oid}" for oid in others)))
        result = self._plumbing.attempt("rev-list", "--objects", "--disk-usage", "--stdin", stdin=given.encode())
        out = result.out.strip()
        return int(out) if not result.status and out.isdigit() else 0

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return True if `older` is an ancestor of `newer`, or the same commit."""
        result = self._plumbing.attempt("merge-base", "--is-ancestor", older, newer)
        if result.status not in {0, 1}:
            raise failure("merge-base", result)
        return result.status == 0

    def merge_base(self, one: str, other: str) -> CommitId | None:
        """Return the merge base of two commits, None if their histories are unrelated."""
        result = self._plumbing.attempt("merge-base", one, other)
        if result.status not in {0, 1}:
            raise failure("merge-base", result)
        return CommitId(result.out.decode().strip()) if result.status == 0 else None

    def check_room(self) -> None:
        """Raise `WorkspaceError` if a branch named `agent` exists: git then refuses branches `agent/…`."""
        if self.commit(_ROOM) is not None:
            raise _no_room()

    def is_taken(self, branch: str) -> bool:
        """Return True if a branch of the workbench, or one below its name, exists; raise as `check_room` does."""
        names = self._plumbing.line("for-each-ref", "--format=%(refname)", _ROOM).split("\n")
        if _ROOM in names:
            raise _no_room()
        return any(f"{name}/".startswith(f"{_HEADS}{branch}/") for name in names)

    def own_branches(self) -> list[str]:
        """Return the branches below `agent/` (short names)."""
        out = self._plumbing.line("for-each-ref", "--format=%(refname)", f"{_HEADS}{BRANCH_PREFIX}")
        return [name.removeprefix(_HEADS) for name in out.split("\n") if name]

    def task_branches(self, task: TaskId) -> list[tuple[str, CommitId]]:
        """Return the branches of a task and their tips, the newest commit first."""
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
        "a branch named agent exists, so git cannot create agent/<task>",
        advice="rename it: git branch -m agent <another name>",
    )


def position_ref(request: WorkspaceRequest) -> str:
    """Return the ref of a session's position on a branch: its newest checkpoint, or the commit restored last."""
    return f"refs/agent/{request.session}/at/{request.branch.removeprefix(BRANCH_PREFIX)}"


def branch_refs(session: str, branch: str, tip: str) -> dict[str, str]:
    """Return the refs by which machines share the tip of a session's branch."""
    return {f"{_HEADS}{branch}": tip, f"refs/agent/{session}/tip/{branch.removeprefix(BRANCH_PREFIX)}": tip}
