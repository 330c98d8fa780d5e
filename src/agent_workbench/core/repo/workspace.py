"""Facts about the user's repo, a task's worktree, and a merge between them."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.recorded_value import RecordedValue


class OwnGit(Struct, frozen=True):
    """Configuration of the user's git that commits of the workbench do not obey, and why git would refuse one.

    `nameless`: it would refuse to commit, because it knows no author. `signs`: it signs commits. `hooks` are those of
    commits and merges. `lacks_objects`: it would fetch content of HEAD that a partial clone has left out.
    """

    nameless: bool = False
    signs: bool = False
    hooks: tuple[str, ...] = ()
    lacks_objects: bool = False

    @property
    def left_out(self) -> str:
        """The signature and the hooks that a commit of the workbench lacks, empty if there are none."""
        hooks = f"run {', '.join(self.hooks)}" if self.hooks else ""
        does = " and ".join(filter(None, ("sign the commit (commit.gpgSign)" if self.signs else "", hooks)))
        return f"Your own git would {does}; the workbench does not." if does else ""


class RepoFacts(Struct, frozen=True):
    """The user's checkout: `head` is its commit, `branch` is empty if HEAD is detached.

    It may be the `copy_of` a checkout that is still there, or continue one that was `left` and has sessions. `filtered`
    are tracked files that git passes through a filter (such as of LFS), each with its name.
    """

    root: str
    git_dir: str
    common_dir: str
    head: CommitId
    branch: str
    dirty_paths: tuple[str, ...] = ()
    untracked_paths: tuple[str, ...] = ()
    shallow: bool = False
    submodules: tuple[str, ...] = ()
    copy_of: str = ""
    left: str = ""
    own_git: OwnGit = OwnGit()
    filtered: tuple[tuple[str, str], ...] = ()


class WorkspaceRequest(Struct, frozen=True):
    """Request for a worktree. `branch` is its full name, such as `agent/T-1`; `base` is its first commit."""

    session: SessionId
    task: TaskId
    branch: str
    base: CommitId
    links: tuple[str, ...] = ()


class WorkspaceFacts(RecordedValue, frozen=True):
    """A worktree that is ready; `tree` is the tree of approved content."""

    path: str
    branch: str
    base: CommitId
    tree: str
    linked: tuple[str, ...] = ()
    rebuilt: bool = False


class Orphan(Struct, frozen=True):
    """A branch with its worktree (`path`, empty: none) that no journal knows.

    `session` and `task` are its owner, if known; `holds` describes possible work in it. Without `has_branch` only the
    worktree is left, for example of a former repository at this path.
    """

    branch: str
    path: str
    session: SessionId | None = None
    task: TaskId | None = None
    holds: str = ""
    has_branch: bool = True


class Checkpoint(RecordedValue, frozen=True):
    """Exact content of a workspace, stored as `commit` under `ref`."""

    ref: str
    commit: CommitId
    tree: str


class Reset(Struct, frozen=True):
    """Paths that a reset of the workspace to a tree changed.

    `restored` are paths of the tree; `removed` are files that it lacks, and folders with a trailing slash.
    """

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class FileStat(Struct, frozen=True):
    """A file that differs between two trees: lines `added` and `removed`, None for a binary file."""

    path: str
    added: int | None
    removed: int | None

    @property
    def text(self) -> str:
        """The counts as `+3 −1`, or that the file is binary."""
        return "binary" if self.added is None else f"+{self.added} −{self.removed}"


class MergeMethod(StrEnum):
    """Method of a merge, in git's words."""

    FAST_FORWARD = "fast-forward"
    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


class MergeOutcome(RecordedValue, frozen=True):
    """Result of a merge into the user's branch; `how` is a `MergeMethod`."""

    commit: CommitId
    into: str
    how: str


class ResourceUse(RecordedValue, frozen=True):
    """Resources that commands used: CPU time of all their processes, wall clock, and the memory of the largest process.

    `gpu_memory_bytes` is None where no GPU could be used: a sandbox has no devices.
    """

    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_bytes: int = 0
    gpu_memory_bytes: int | None = None

    def plus(self, other: "ResourceUse") -> "ResourceUse":
        """Return the use of both, one after the other."""
        gpus = [each for each in (self.gpu_memory_bytes, other.gpu_memory_bytes) if each is not None]
        return ResourceUse(
            round(self.cpu_seconds + other.cpu_seconds, 3),
            round(self.wall_seconds + other.wall_seconds, 3),
            max(self.peak_memory_bytes, other.peak_memory_bytes),
            max(gpus, default=None),
        )


TIMED_OUT = "timed out"


class CommandOutcome(Struct, frozen=True):
    """Result of a command. `exit_code` is None if it was stopped; `reason` says why (timeout, cancelled).

    `stderr` is the standard error of a command that keeps it apart from its `output`.
    """

    exit_code: int | None
    output: str
    seconds: float
    cut_bytes: int = 0
    reason: str = ""
    stderr: str = ""

    @property
    def timed_out(self) -> bool:
        """True if the command was stopped because its time was over."""
        return self.exit_code is None and self.reason.startswith(TIMED_OUT)


class SandboxFacts(RecordedValue, frozen=True):
    """Confinement of commands: `bwrap`, `user` (they run as another user) or `none`; `why` names what is missing."""

    kind: str
    holds: bool
    network: bool
    why: str = ""


class MergeTarget(Struct, frozen=True):
    """The checked-out branch (empty when HEAD is detached) and its commit. A merge is approved for these."""

    branch: str
    head: CommitId


class MergePreview(Struct, frozen=True):
    """A merge into `target` as it would be made now.

    `commits` are newest first, as short hash and title. `changes` are those of the branch's files, empty if the two
    cannot be merged. `obstacles` are the reasons why the merge would be refused, one sentence each. `methods` are those
    that make a difference here, the default first; `message` is a proposal for the commit of a squash.
    """

    target: MergeTarget
    commits: tuple[str, ...]
    changes: tuple[FileChange, ...]
    obstacles: tuple[str, ...]
    method: MergeMethod = MergeMethod.FAST_FORWARD
    methods: tuple[MergeMethod, ...] = ()
    message: str = ""
    own_git: OwnGit = OwnGit()
