"""Facts about the user's repo and the worktree a task is done in."""

from msgspec import Struct

from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.recorded_value import RecordedValue


class RepoFacts(Struct, frozen=True):
    """The user's checkout as it stands: `head` is the commit, `branch` empty when detached."""

    root: str
    git_dir: str
    common_dir: str
    head: CommitId
    branch: str
    dirty_paths: tuple[str, ...] = ()
    untracked_paths: tuple[str, ...] = ()
    shallow: bool = False
    submodules: tuple[str, ...] = ()


class WorkspaceRequest(Struct, frozen=True):
    """Which worktree is wanted. `branch` is a full short name such as `agent/T-1`; `base` the commit it starts from."""

    session: SessionId
    task: TaskId
    branch: str
    base: CommitId
    links: tuple[str, ...] = ()


class WorkspaceFacts(RecordedValue, frozen=True):
    """A worktree that is ready: `tree` is the tree of approved content."""

    path: str
    branch: str
    base: CommitId
    tree: str
    linked: tuple[str, ...] = ()
    rebuilt: bool = False


class Orphan(Struct, frozen=True):
    """A branch with its worktree (`path`, empty: none) that belongs to no task: no journal says that one began there.

    `session` and `task` are whom it was made for, where that is known; `holds` says what might be work in it. Without
    `has_branch` the worktree alone is left, as of a repository that stood here before.
    """

    branch: str
    path: str
    session: SessionId | None = None
    task: TaskId | None = None
    holds: str = ""
    has_branch: bool = True


class Checkpoint(RecordedValue, frozen=True):
    """The exact content of a workspace, kept under `ref` as `commit`; `journal` is what its message names."""

    ref: str
    commit: CommitId
    tree: str


class Reset(Struct, frozen=True):
    """Paths that differed from a tree before a workspace was reset to it.

    `restored` are paths of the tree, `removed` are files that it lacks and folders (with a slash at the end).
    """

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class FileStat(Struct, frozen=True):
    """A file that differs between two trees: lines `added` and `removed`, None where it is no text."""

    path: str
    added: int | None
    removed: int | None


class MergeOutcome(RecordedValue, frozen=True):
    """What a merge did to the user's branch: `how` is `fast-forward` or `merge`."""

    commit: CommitId
    into: str
    how: str


class CommandOutcome(Struct, frozen=True):
    """A command that ran: `exit_code` None when it was stopped, `reason` then says why (timeout, cancelled)."""

    exit_code: int | None
    output: str
    seconds: float
    cut_bytes: int = 0
    reason: str = ""


class SandboxFacts(RecordedValue, frozen=True):
    """How commands are confined: `kind` is `bwrap` or `none`; `why` says what is missing."""

    kind: str
    holds: bool
    network: bool
    why: str = ""
