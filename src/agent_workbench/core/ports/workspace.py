"""What the engine needs of files, git and commands, as protocols named by role."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.merges import MergePreview, MergeTarget
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.retrieval import PastCommit
from agent_workbench.core.workspace import (
    Checkpoint,
    CommandOutcome,
    MergeOutcome,
    Orphan,
    RepoFacts,
    Reset,
    SandboxFacts,
    WorkspaceFacts,
    WorkspaceRequest,
)


class Sources(Protocol):
    """The files of one folder under git and its past, as the code search reads them. A `Workspace` is one."""

    @property
    def root(self) -> str:
        """The folder's absolute path."""

    async def list_files(self) -> tuple[str, ...]:
        """Return tracked and untracked-not-ignored files, sorted."""

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """Return what is in these files; one that is gone, a link, or cannot be read is left out."""

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        """Return the newest commits before now, newest first, at most `limit` and none from commit `until` on."""


class Workspace(Sources, Protocol):
    """A git worktree outside the user's checkout. Paths are repo-relative POSIX; refusals are `WorkspaceError`."""

    @property
    def facts(self) -> WorkspaceFacts:
        """Where it is and what it started from."""

    async def read(self, path: str) -> FileContent | None:
        """Return a regular file's content, None where there is none; raise for symlinks and paths that leave."""

    async def write(self, changes: Sequence[FileChange], parent_tree: str) -> str:
        """Make all the changes or none, return the tree of `parent_tree` with them. Raises when a preimage moved."""

    async def strays(self, tree: str) -> tuple[FileChange, ...]:
        """Return how files differ from `tree` (files that it lacks and its rules do not ignore included)."""

    async def put_back(self, tree: str, paths: Collection[str]) -> None:
        """Make these paths what they are in `tree` (absent there: removed)."""

    async def reset(self, tree: str) -> Reset:
        """Make the files exactly those of `tree` and what its own rules ignore, with no bytecode of Python's."""

    async def checkpoint(self, session: SessionId, seq: int, message: str) -> Checkpoint:
        """Keep all content under `refs/agent/<session>/<seq>`."""

    async def restore(self, commit: CommitId) -> None:
        """Make tracked and untracked-not-ignored files exactly those of the checkpoint or commit."""

    async def commit(self, tree: str, message: str) -> CommitId:
        """Commit `tree` on the task's branch on top of its base; raise if the branch was moved by somebody else."""

    async def withdraw(self) -> None:
        """Delete the task's branch unless it holds a commit of somebody else; one of ours stays under `refs/agent/`."""

    async def changes(self, tree: str) -> tuple[FileChange, ...]:
        """Return how `tree` differs from the base."""

    async def release(self, keep: bool) -> None:
        """Give the task's lock back, and remove the worktree unless it is to be kept."""


class Workspaces(Protocol):
    """The user's repo, never touched, and the worktrees beside it."""

    async def inspect(self) -> RepoFacts:
        """Return the state of the user's checkout, running nothing that the repo configures; raise `RepoError`."""

    async def free_branch(self, task: TaskId, session: SessionId) -> str:
        """Return the branch for this session's work on the task: `agent/<task>`, with a suffix if that is taken.

        Orphans of the task in which there is no work are removed before.
        """

    async def orphans(self) -> tuple[Orphan, ...]:
        """Return branches and worktrees of the workbench that no session began a task on, and nobody is at."""

    async def taken(self, tasks: Sequence[TaskId], session: SessionId) -> Mapping[TaskId, str]:
        """Return the tasks that other sessions than this one have a workspace open for, with who holds each."""

    async def open(self, request: WorkspaceRequest) -> Workspace:
        """Lock the task and make (or rebuild) its worktree; raise `LockedError` naming the holder, `WorkspaceError`."""

    async def task_commit(self, task: TaskId) -> CommitId | None:
        """Return the newest commit of the task on one of its branches that is not merged into HEAD, or None."""

    async def merge(self, commit: CommitId, message: str, target: MergeTarget) -> MergeOutcome:
        """Bring the commit into the user's checked-out branch; raise with nothing changed on conflict or dirt.

        Raises `TargetMoved` where the checked-out branch or its commit is not `target`.
        """

    async def merge_preview(self, commit: CommitId) -> MergePreview:
        """Return a merge of the commit into the user's checked-out branch as it would be made now."""


OnOutput = Callable[[str], None]


class Command(Struct, frozen=True):
    """A command line for `/bin/sh -c`, where and how long it may run (seconds), and what is added to its environment.

    `environment` names are set over a clean environment. `writable` are absolute paths a sandbox leaves writable
    besides `folder`.
    """

    line: str
    folder: str
    timeout_seconds: float
    environment: Mapping[str, str]
    writable: tuple[str, ...] = ()


class Shell(Protocol):
    """Runs commands in a sandbox where there is one; no descendant outlives a command."""

    async def observe(self) -> SandboxFacts:
        """Return how commands are confined, found out by a canary."""

    async def run(self, command: Command, on_output: OnOutput) -> CommandOutcome:
        """Run to the end, the timeout or cancellation; output (stdout and stderr as they come) is bounded."""
