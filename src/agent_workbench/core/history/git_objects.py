"""Git objects that a journal names: what another machine needs to continue the session."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.events import (
    CheckpointTaken,
    Recorded,
    SessionForked,
    TaskCommitted,
    TaskRolledBack,
    TaskStarted,
)
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.repo.workspace import Checkpoint, WorkspaceFacts

NAMING_EVENTS = (CheckpointTaken, SessionForked, TaskStarted, TaskCommitted, TaskRolledBack)
"""Events whose lines may be copied only after the session's refs were pushed."""


class TaskBranch(Struct, frozen=True):
    """Branch of a task in a session.

    `tip` is its commit, None after a rollback. `commits` are those that the session made on it. `position` is the
    commit with the newest content of the workspace.
    """

    task: TaskId
    branch: str
    base: CommitId
    tip: CommitId | None
    position: CommitId
    commits: tuple[CommitId, ...] = ()


class GitObjects(Struct, frozen=True):
    """Checkpoints by ref, and branches by name, as a journal has them; a fork's journal has those of its parent too."""

    checkpoints: Mapping[str, CommitId] = field(default_factory=dict)
    branches: Mapping[str, TaskBranch] = field(default_factory=dict)


def git_objects(events: Sequence[Recorded]) -> GitObjects:
    """Return the git objects that these events name."""
    checkpoints: dict[str, CommitId] = {}
    branches: dict[str, TaskBranch] = {}
    branch = ""
    for recorded in events:
        match recorded.event:
            case TaskStarted(task=task, workspace=WorkspaceFacts() as workspace):
                branch = workspace.branch
                branches[branch] = _begun(task, workspace, branches.get(branch))
            case SessionForked(workspace=WorkspaceFacts() as workspace, checkpoint=Checkpoint() as checkpoint):
                parent = branches.pop(branch, None)
                branch = workspace.branch
                if parent is not None:
                    branches = {branch: replace(_begun(parent.task, workspace, None), position=checkpoint.commit)}
                checkpoints[checkpoint.ref] = checkpoint.commit
            case CheckpointTaken(checkpoint=checkpoint):
                checkpoints[checkpoint.ref] = checkpoint.commit
                if branch in branches:
                    branches[branch] = replace(branches[branch], position=checkpoint.commit)
            case TaskCommitted(commit=commit, branch=name) if name in branches:
                known = branches[name]
                branches[name] = replace(known, tip=commit, commits=(*known.commits, commit))
            case TaskRolledBack() if branch in branches:
                branches[branch] = replace(branches[branch], tip=None, position=branches[branch].base)
            case _:
                continue
    return GitObjects(checkpoints, branches)


def _begun(task: TaskId, workspace: WorkspaceFacts, before: TaskBranch | None) -> TaskBranch:
    commits = before.commits if before is not None else ()
    return TaskBranch(task, workspace.branch, workspace.base, workspace.base, workspace.base, commits)
