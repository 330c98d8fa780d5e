"""What the engine needs of the world, and what a front end needs of a session, as protocols named by role."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent_workbench.core.events import Event, Recorded, SkillText
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.intents import Intent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.merges import MergeBrings
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.past_actions import PastActions
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.plan_piece import PlanPiece
from agent_workbench.core.retrieval import Chunk, CodeQuery, IndexStatus, PastCommit
from agent_workbench.core.rules import KeptRule
from agent_workbench.core.settings import GateKind
from agent_workbench.core.workspace import (
    Checkpoint,
    CommandOutcome,
    MergeOutcome,
    RepoFacts,
    SandboxFacts,
    WorkspaceFacts,
    WorkspaceRequest,
)


class Session(Protocol):
    """All that a front end knows: intents go in, updates come out. Live, scripted and replayed sessions have it."""

    async def submit(self, intent: Intent) -> None:
        """Take an intent; what came of it shows in the updates. One that no longer fits is dropped with a notice."""

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield the newest update whenever there is one (older ones may be passed over); ends with the session."""


class Clock(Protocol):
    """Time, so that tests and replays decide what it is."""

    def now(self) -> str:
        """Return UTC time in ISO 8601 with microseconds and `Z`."""

    def monotonic_seconds(self) -> float:
        """Return seconds that never go back."""


class Ids(Protocol):
    """Fresh names."""

    def session(self) -> SessionId:
        """Return a session id nobody has."""


class Journal(Protocol):
    """The append-only log of one session, held by one writer."""

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        """Write the event durably (flush, fsync), return it with its hash; raise `StorageError`, `JournalError`."""

    async def close(self) -> None:
        """Give the lock back."""


class Model(Protocol):
    """A server that thinks."""

    async def observe(self, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
        """Wait until who answers for `purpose` is ready and return what it says of itself; raise `ModelError`."""

    def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        """Stream an answer, ended by `AnswerEnd`; closing the iterator frees the server.

        Raises `ModelError`; one that has `another` set says that the next `observe` finds another endpoint.
        """

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        """Return the true token count of each text for who answers for `purpose`, zeros where it cannot count."""

    async def close(self) -> None:
        """Let go of the server; one that we started ends."""


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
        """Return how files differ from `tree` (untracked-not-ignored files that it lacks included)."""

    async def put_back(self, tree: str, paths: Collection[str]) -> None:
        """Make these paths what they are in `tree` (absent there: removed)."""

    async def checkpoint(self, session: SessionId, seq: int, message: str) -> Checkpoint:
        """Keep all content under `refs/agent/<session>/<seq>`."""

    async def restore(self, commit: CommitId) -> None:
        """Make tracked and untracked-not-ignored files exactly those of the checkpoint or commit."""

    async def commit(self, tree: str, message: str) -> CommitId:
        """Commit `tree` on the task's branch on top of its base; raise if the branch was moved by somebody else."""

    async def withdraw(self) -> None:
        """Put the task's branch back to its base where its tip is a commit of ours, which stays under `refs/agent/`."""

    async def changes(self, tree: str) -> tuple[FileChange, ...]:
        """Return how `tree` differs from the base."""

    async def release(self, keep: bool) -> None:
        """Give the task's lock back, and remove the worktree unless it is to be kept."""


class Workspaces(Protocol):
    """The user's repo, never touched, and the worktrees beside it."""

    async def inspect(self) -> RepoFacts:
        """Return the state of the user's checkout, running nothing that the repo configures; raise `RepoError`."""

    async def free_branch(self, task: TaskId, session: SessionId) -> str:
        """Return the branch for this session's work on the task: `agent/<task>`, with a suffix if that is taken."""

    async def taken(self, tasks: Sequence[TaskId], session: SessionId) -> tuple[TaskId, ...]:
        """Return those of the tasks that other sessions than this one have a workspace open for."""

    async def open(self, request: WorkspaceRequest) -> Workspace:
        """Lock the task and make (or rebuild) its worktree; raise `LockedError` naming the holder, `WorkspaceError`."""

    async def task_commit(self, task: TaskId) -> CommitId | None:
        """Return the newest commit of the task on one of its branches that is not merged into HEAD, or None."""

    async def merge(self, commit: CommitId, message: str) -> MergeOutcome:
        """Bring the commit into the user's checked-out branch; raise with nothing changed on conflict or dirt."""

    async def merge_brings(self, commit: CommitId) -> MergeBrings:
        """Return what a merge would bring into the user's checked-out branch; no changes where it cannot be done."""

    async def merge_obstacles(self, commit: CommitId) -> tuple[str, ...]:
        """Return why a merge would be refused, one sentence each: conflicts, changed files in the way."""


OnOutput = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Command:
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


class Retriever(Protocol):
    """Finds code. What it searches is the folder's files as they are at the time of the search."""

    def prepare(self, sources: Sources) -> object:
        """Begin to index in the background, so that the first search need not."""

    def status(self, sources: Sources) -> IndexStatus:
        """Return how far the index of this folder is. Does not block."""

    async def close(self) -> None:
        """Stop what runs in the background."""

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        """Return the best chunks, best first; unless `complete`, of what is indexed so far, without waiting."""


class Plans(Protocol):
    """The plan's file."""

    @property
    def path(self) -> str:
        """Where the plan is, relative to the repo."""

    async def read(self) -> Plan:
        """Return the plan; raise `PlanError` with file and line."""

    async def set_status(self, task: TaskId, status: TaskStatus, reason: str = "") -> None:
        """Write one task's status, keeping everything else of the file to the byte where possible.

        The reason stands beside it while the task is blocked.
        """

    async def move(self, task: TaskId, *, up: bool) -> None:
        """Bring a task before its neighbour (or behind it); one that has none there stays."""

    async def piece(self, task: TaskId | None, *, new: bool = False) -> PlanPiece:
        """Return the text of a task (None: all of the plan, also a broken one), or a new one to be filled in behind it.

        Raises `PlanError` with file and line.
        """

    async def replace_text(self, before: str, text: str, keep: Sequence[TaskId] = ()) -> None:
        """Make the plan `text`, which `before` was edited to; what was changed on the disk meanwhile is kept as well.

        Raises `PlanError`, with nothing written, for what cannot be read (file and line as in `text`), lacks one of
        the tasks `keep`, or was changed meanwhile in the same lines.
        """

    async def add(self, tasks: Sequence[Task]) -> None:
        """Append tasks, keeping comments and order."""

    async def new_plan(self, plan: Plan) -> str:
        """Begin a new plan; return where the former one was archived, empty where there was none."""


class Memory(Protocol):
    """Scratchpads."""

    async def read_scratchpad(self, task: TaskId, fork: str = "") -> str:
        """Return the text, empty when there is none; a `fork` (its six letters) has notes of its own."""

    async def write_scratchpad(self, task: TaskId, before: str, text: str, fork: str = "") -> str:
        """Replace `before` by `text` and return what now stands; a text changed meanwhile is merged, never lost."""


class Setup(Protocol):
    """What a repo needs before it can be worked in."""

    async def missing(self) -> tuple[str, ...]:
        """Return the files that would be written, none when the repo is set up."""

    async def write(self) -> tuple[str, ...]:
        """Write them, leaving what is there alone; return what was written."""


class Trust(Protocol):
    """What the repo would have us run or obey, and whether the user said yes to it."""

    async def question(self) -> tuple[str, ...]:
        """Return what has to be trusted, a line each; nothing when it was, or when there is nothing to trust."""

    async def accept(self) -> None:
        """Remember that the user trusts exactly what the question showed."""


class Rules(Protocol):
    """Rules that outlive a session, and what past sessions did, to try them on."""

    async def kept(self) -> tuple[KeptRule, ...]:
        """Return the rules that the user keeps outside of the repo and that count in it; raise `ConfigError`."""

    async def keep(self, kept: KeptRule) -> None:
        """Write a rule where it is kept; raise `TrustError` where the repo's own rules count for nothing."""

    async def revoke(self, kept: KeptRule) -> None:
        """Take a rule out of where it is kept; raise as `keep` does."""

    async def past(self, kind: GateKind) -> PastActions:
        """Return the actions of a kind that stood at the gate in all sessions of the repo, bounded in number."""


class Skills(Protocol):
    """Folders with a `SKILL.md`."""

    async def load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        """Return these skills' texts in order; unknown names raise `ConfigError` naming the known ones."""


class Desktop(Protocol):
    """The desktop that the terminal is on, if there is one."""

    async def notify(self, title: str, text: str) -> None:
        """Show a notification, in the background of whatever the user does; where that cannot be, nothing happens."""
