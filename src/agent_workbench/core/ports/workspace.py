"""Ports of the world a task works on: files under git, worktrees, the user's repo, and commands."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.core.repo.workspace import (
    Checkpoint,
    CommandOutcome,
    MergeMethod,
    MergeOutcome,
    MergePreview,
    MergeTarget,
    Orphan,
    OwnGit,
    RepoFacts,
    Reset,
    ResourceUse,
    SandboxFacts,
    WorkspaceFacts,
    WorkspaceRequest,
)


class Sources(Protocol):
    """Files of one folder under git and their history, as the code search reads them. A `Workspace` is one."""

    @property
    def root(self) -> str:
        """Absolute path of the folder."""

    async def list_files(self) -> tuple[str, ...]:
        """Return the tracked and the untracked, not ignored files, sorted."""

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents of these files, without those that are gone, links, or unreadable."""

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        """Return the newest past commits, newest first, at most `limit` and none from commit `until` on."""


class CheckoutSources(Sources, Protocol):
    """Files of the user's checkout, with those that a workspace lacks."""

    async def absent_sources(self) -> tuple[str, ...]:
        """Return what the code may need and a workspace lacks: ignored sources, and submodules that have files."""

    async def own_git(self) -> OwnGit:
        """Return what the user's git would do and the workbench does not; raise `RepoError`."""

    async def linkable(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of `workspace.link` that a workspace on HEAD would have: those that are there.

        Raises `WorkspaceError` for one that cannot be linked, as `Workspaces.open` does.
        """


class ReadableFiles(Sources, Protocol):
    """Files that a tool may read one by one. A `Workspace` is such a folder."""

    async def read(self, path: str) -> FileContent | None:
        """Return a regular file's content, None if there is none; raise `WorkspaceError`."""


class Workspace(ReadableFiles, Protocol):
    """A git worktree outside the user's checkout. Paths are repo-relative POSIX; errors are `WorkspaceError`."""

    @property
    def facts(self) -> WorkspaceFacts:
        """Location of the worktree and the commit it started from."""

    async def read(self, path: str) -> FileContent | None:
        """Return a regular file's content, None if there is none; raise for symlinks and paths outside."""

    async def links(self) -> Mapping[str, str]:
        """Return the symbolic links of the base that lead to a path of the repository, each with that path."""

    async def write(self, changes: Sequence[FileChange], parent_tree: str) -> str:
        """Apply all changes or none; return `parent_tree` with them. Raises if a file differs from its preimage."""

    async def unapproved_changes(self, tree: str) -> tuple[FileChange, ...]:
        """Return the files that differ from `tree`, including new ones that its own rules do not ignore."""

    async def put_back(self, tree: str, paths: Collection[str]) -> None:
        """Restore these paths to their content in `tree` (absent there: removed)."""

    async def reset(self, tree: str) -> Reset:
        """Restore exactly the files of `tree` and what its own rules ignore, without Python's bytecode."""

    async def checkpoint(self, session: SessionId, seq: int, message: str) -> Checkpoint:
        """Save all content under `refs/agent/<session>/<seq>`."""

    async def restore(self, commit: CommitId) -> None:
        """Restore exactly the tracked and not ignored files of a checkpoint or commit."""

    async def commit(self, tree: str, message: str) -> CommitId:
        """Commit `tree` on the task's branch, on top of its base; raise if somebody else moved the branch."""

    async def withdraw(self) -> None:
        """Delete the task's branch unless it holds a foreign commit; our own one stays under `refs/agent/`."""

    async def changes(self, tree: str) -> tuple[FileChange, ...]:
        """Return the difference of `tree` to the base."""

    async def release(self, keep: bool) -> None:
        """Release the task's lock, and remove the worktree unless it is to be kept."""


class Workspaces(Protocol):
    """The user's repo, which is never touched, and the worktrees beside it."""

    async def inspect(self) -> RepoFacts:
        """Return the state of the user's checkout; nothing that the repo configures is run. Raises `RepoError`."""

    async def target(self) -> MergeTarget:
        """Return the user's branch and its commit, without a look at the files; raise `RepoError`."""

    async def list_tracked(self) -> tuple[str, ...]:
        """Return the paths of HEAD's regular files, sorted."""

    async def checkout_files(self) -> CheckoutSources:
        """Return the files of the user's checkout for the code search, untracked ones included."""

    async def snapshot_checkout(
        self, session: SessionId, unsaved: Mapping[str, bytes], without: Sequence[str] = ()
    ) -> CommitId:
        """Return a commit on HEAD with the user's uncommitted and untracked files, or HEAD if there are none.

        Files of `unsaved` have this content instead of that on the disk. The paths `without`, and those below a folder
        of them (with a slash), are as in HEAD. The checkout does not change; the commit is kept under
        `refs/agent/<session>/base`. Raises `RepoError`.
        """

    async def free_branch(self, task: TaskId, session: SessionId) -> str:
        """Return the branch for this session's work on the task: `agent/<task>`, with a suffix if taken.

        Orphans of the task that hold no work are removed first.
        """

    async def orphans(self) -> tuple[Orphan, ...]:
        """Return branches and worktrees of the workbench that no session and no process owns."""

    async def taken(self, tasks: Sequence[TaskId], session: SessionId) -> Mapping[TaskId, str]:
        """Return the tasks that other sessions have open, with the holder of each."""

    async def open(self, request: WorkspaceRequest) -> Workspace:
        """Lock the task and make (or rebuild) its worktree; raise `LockedError` or `WorkspaceError`."""

    async def task_commit(self, task: TaskId) -> CommitId | None:
        """Return the newest commit of the task that is not merged into HEAD, or None."""

    async def merge(
        self, commit: CommitId, message: str, target: MergeTarget, method: MergeMethod | None = None
    ) -> MergeOutcome:
        """Merge the commit into the user's checked-out branch; on conflict or local changes raise, unchanged.

        Without a `method` it is a fast-forward where one is possible, else a merge commit.

        Raises `TargetMoved` if the checked-out branch or its commit is not `target`.
        """

    async def merge_preview(self, commit: CommitId, method: MergeMethod | None = None) -> MergePreview:
        """Return a preview of merging the commit into the user's checked-out branch."""


OnOutput = Callable[[str], None]


class Command(Struct, frozen=True):
    """A command line for `/bin/sh -c`, with its folder and its time limit.

    `environment` is added to a clean environment. `writable` are absolute paths that the sandbox leaves writable
    besides `folder`, `readable` those that it leaves visible, and `hidden` those that it shows as empty. `apart`: its
    standard error is not a part of its output. `private`: the folder is a worktree or temporary, and may be given to
    the user that commands run as. `stdin` is all of its standard input. `keys` are files that the sandbox hides from
    every other command. `linked` are folders of the checkout by name: in the sandbox it may write to a copy of them
    that is thrown away. `joins`: it shares the network of the command that was left running, if there is one.
    """

    line: str
    folder: str
    timeout_seconds: float
    environment: Mapping[str, str]
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    apart: bool = False
    private: bool = False
    stdin: str = ""
    keys: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    joins: bool = False


class BackgroundCommand(Protocol):
    """A command that was left running in the sandbox. It may read its folder and writes only to a temporary one."""

    @property
    def reachable(self) -> bool:
        """True if commands that join it reach its servers at 127.0.0.1."""

    @property
    def shared(self) -> bool:
        """True if its network is that of the host: all that runs there reaches it."""

    @property
    def outcome(self) -> CommandOutcome | None:
        """Exit code and reason of its end, without output; None while it runs."""

    def tail(self, since: int = 0) -> tuple[str, int]:
        """Return the end of its output after byte `since`, and the number of bytes that it has written so far."""

    async def wait(self) -> CommandOutcome:
        """Return how it ended when it and all its descendants have."""

    async def stop(self) -> CommandOutcome:
        """End it and all its descendants, if they run, and return how it ended."""


class Shell(Protocol):
    """Runner of commands, in a sandbox if there is one. No descendant outlives a command."""

    async def observe(self) -> SandboxFacts:
        """Return the confinement of commands, found out by a canary."""

    async def run(self, command: Command, on_output: OnOutput) -> CommandOutcome:
        """Run to the end, the timeout or cancellation; the output is bounded, and interleaved unless `apart`."""

    async def start(self, command: Command, on_output: OnOutput) -> BackgroundCommand:
        """Start a command and leave it running; its owner stops it. Raises `SandboxError` without a sandbox.

        It has no time limit. Output that it writes faster than it is read makes it wait.
        """

    async def copies(self, linked: Sequence[str]) -> bool:
        """Return True if a command may write to copies of these linked folders, or to the folders themselves.

        Where it may not, their caches that there are appear empty and can be written to.
        """

    def used(self) -> ResourceUse | None:
        """Return the resources of the commands that ended since the last call, None if there was none."""
