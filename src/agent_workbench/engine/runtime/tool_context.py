"""Context of a tool call: the task with the files that it may read and change, its workspace, and the ports."""

from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.judges import Protection, has_runner_settings
from agent_workbench.core.database_report import Backlog
from agent_workbench.core.errors import PatchError, WorkspaceError
from agent_workbench.core.events import Event
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.patch.file_piece import FilePiece, locate
from agent_workbench.core.patch.paths import literal_glob, matches_glob
from agent_workbench.core.patch.values import FileContent, PatchBounds
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.audit_index import AuditIndex
from agent_workbench.core.ports.extensions import CustomPrompts, Hooks, Playbooks, Skills
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.model import EndpointModels, Model
from agent_workbench.core.ports.repo_files import Memory, Plans, RuleStore
from agent_workbench.core.ports.search import Knowledge, Retriever
from agent_workbench.core.ports.stores import Inbox
from agent_workbench.core.ports.tools import LanguageServers, SchemaValidator, ToolSource
from agent_workbench.core.ports.workspace import ReadableFiles, Shell, Workspace, Workspaces
from agent_workbench.core.repo.retrieval import Chunk, imports_chunk
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.file_pieces import may_rewrite, offered_pieces
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.task_estimates import TaskFigures
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.engine.runtime.background_holder import BackgroundHolder
from agent_workbench.engine.runtime.budget import seconds_left
from agent_workbench.engine.runtime.publisher import OutputTail
from agent_workbench.engine.runtime.stoppable import StoppableCall

PROTECTED_GLOBS = (
    # read by the workbench itself
    ".agent.yml",
    "memory/**",
    "skills/**",
    "tasks/queue/**",
    # executed or sent by agents and their hosts: skills, hooks, servers, keys
    "**/.agents/**",
    "**/.claude/**",
    "**/.mcp.json",
    "**/.env",
    "**/.env.local",
)
"""Files that no diff may change."""
MAX_DIFF_BYTES = 1_000_000
MAX_FILES = 100


class TaskFiles(Protocol):
    """Files of a workspace or of a recorded tree. Paths are repo-relative POSIX."""

    async def list_files(self) -> tuple[str, ...]:
        """Return the paths of all files, sorted."""

    async def read(self, path: str) -> FileContent | None:
        """Return a regular file's content, None if there is none; raise `WorkspaceError`."""


class TaskBounds(Struct, frozen=True):
    """Bounds of a task at one state of a session."""

    settings: Settings
    task: Task
    state: SessionState

    @property
    def run(self) -> TaskRun:
        """The task's run; raise `WorkspaceError` if there is none."""
        if self.state.run is None:
            raise WorkspaceError("no task is being worked on")
        return self.state.run

    def may_read(self, path: str) -> bool:
        """Return True if the task may read `path`."""
        return any(matches_glob(path, glob) for glob in self.task.scope.allowed_read_globs)

    def check_readable(self, path: str) -> None:
        """Raise `WorkspaceError` if the task may not read `path`."""
        if not self.may_read(path):
            allowed = ", ".join(self.task.scope.allowed_read_globs)
            raise WorkspaceError(f"{path!r} is outside what this task may read", advice=f"allowed: {allowed}")

    def patch_bounds(self) -> PatchBounds:
        """Return the bounds of the task's diffs."""
        folders = (self.settings.memory.dir, *self.settings.skills.folders)
        limits = self.task.constraints
        return PatchBounds(
            max_bytes=MAX_DIFF_BYTES if limits.max_diff_bytes is None else limits.max_diff_bytes,
            max_files=MAX_FILES if limits.max_files_changed is None else limits.max_files_changed,
            write_globs=() if self.task.changes_nothing else self.task.scope.allowed_write_globs,
            protected_globs=(*PROTECTED_GLOBS, *map(_below, folders)),
            judges=self._read_only(),
        )

    def _read_only(self) -> tuple[str, ...]:
        """Return the judges of the task that no diff may change here."""
        run = self.state.run
        if run is None:
            return ()
        kinds = self.read_only
        return tuple(path for kind in kinds for path in run.judges.protected(kind) if not has_runner_settings(path))

    @property
    def read_only(self) -> tuple[Protection, ...]:
        """Protections that no diff passes here. Unattended, no person can open a judge."""
        config = self.state.config
        return tuple(Protection) if config is not None and config.headless else (Protection.READ_ONLY,)


def _below(folder: str) -> str:
    """Return the glob of all files in a folder of the repo."""
    return f"{literal_glob(str(PurePosixPath(folder)))}/**"


async def no_figures() -> Sequence[TaskFigures]:
    """Return no figures, for sessions without earlier ones."""
    return ()


async def no_queue(names: Sequence[str], reason: str) -> Sequence[str]:
    """Return that all tasks ended, for sessions without a queue."""
    return names


class Ports(Struct, frozen=True):
    """Ports of a session.

    `environment_for` returns the variables that a command in a worktree needs. `redacted` returns a text without the
    values of secret environment variables, as the journal stores it. `past_speed` returns the prompt tokens that a
    model read in a second in the repo's earlier sessions, 0.0 if none tells. `past_figures` returns what the tasks done
    in these sessions cost. `withdraw` takes tasks back from the queue, with the reason, and returns those that ended.
    Without `playbooks` none can be used, without `audit` it cannot be read, and without
    `language_servers` nobody looks at applied diffs. `backlog` returns what other machines
    cannot read of the session yet.
    """

    workspaces: Workspaces
    shell: Shell
    retriever: Retriever
    plans: Plans
    memory: Memory
    knowledge: Knowledge
    skills: Skills
    prompts: CustomPrompts
    rules: RuleStore
    hooks: Hooks
    model: Model
    endpoints: EndpointModels
    clock: Clock
    inbox: Inbox
    environment_for: Callable[[str], Awaitable[Mapping[str, str]]]
    redacted: Callable[[str], str]
    past_speed: Callable[[ModelFacts], Awaitable[float]]
    schemas: SchemaValidator
    tool_sources: tuple[ToolSource, ...] = ()
    past_figures: Callable[[], Awaitable[Sequence[TaskFigures]]] = no_figures
    withdraw: Callable[[Sequence[str], str], Awaitable[Sequence[str]]] = no_queue
    playbooks: Playbooks | None = None
    audit: AuditIndex | None = None
    language_servers: LanguageServers | None = None
    backlog: Callable[[], Backlog] = Backlog


class ToolContext(Struct, frozen=True):
    """The task or chat that a tool is called for; `state` is the session as it was at the call.

    `files` are the files that may be read: those of the task's workspace, or in a chat those of the user's checkout.
    `record` adds an event while the tool runs, and `newest_state` returns the session as it is then.
    """

    ports: Ports
    settings: Settings
    task: Task
    files: ReadableFiles
    state: SessionState
    on_output: OutputTail
    stoppable: StoppableCall
    background: BackgroundHolder
    record: Callable[[Event], Awaitable[object]]
    newest_state: Callable[[], SessionState]
    opened: Workspace | None = None

    @property
    def workspace(self) -> Workspace:
        """The task's workspace; raise `WorkspaceError` in a chat, which has none."""
        if self.opened is None:
            raise WorkspaceError("a chat has no workspace, so nothing can be changed or run in one")
        return self.opened

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that the task or the chat was started with."""
        return self.state.specs

    @property
    def scope(self) -> TaskBounds:
        """The files that the task may read and change."""
        return TaskBounds(self.settings, self.task, self.state)

    @property
    def run(self) -> TaskRun:
        """The task's run; raise `WorkspaceError` in a chat."""
        return self.scope.run

    def may_read(self, path: str) -> bool:
        """Return True if the task may read `path`."""
        return self.scope.may_read(path)

    def check_readable(self, path: str) -> None:
        """Raise `WorkspaceError` if the task may not read `path`."""
        self.scope.check_readable(path)

    async def for_prompt(self, chunks: Sequence[Chunk], *, anew: bool = False) -> tuple[Chunk, ...]:
        """Return code as a prompt shows it: whole files marked, and the imports of a file after its last chunk.

        A small model rewrites what it reads first. Imports are left out where the prompt shows them already (not with
        `anew`: a compaction makes another prompt). Files that may not be rewritten stay as they are.
        """
        run, told, found = self.state.run, list[Chunk](), dict[str, tuple[Chunk | None, str]]()
        last = {chunk.path: at for at, chunk in enumerate(chunks)}
        for at, chunk in enumerate(chunks):
            if run is not None and chunk.path not in found and may_rewrite(run, chunk.path):
                pieces = () if anew else (await to_thread(offered_pieces, run)).pieces
                own = [each for each in chunks if each.path == chunk.path]
                found[chunk.path] = await self._imports_and_text(
                    own, [each for each in pieces if each.path == chunk.path]
                )
            imports, text = found.get(chunk.path, (None, ""))
            alone = chunk if imports is None else chunk.without_context(imports.text.split("\n"))
            whole = chunk.first_line == 1 and chunk.text.rstrip("\n") == text != ""
            told.append(replace(alone, whole=True) if whole else alone)
            if imports is not None and at == last[chunk.path]:
                told.append(imports)
        return tuple(told)

    async def _imports_and_text(self, chunks: Sequence[Chunk], pieces: Sequence[FilePiece]) -> tuple[Chunk | None, str]:
        """Return the imports of the chunks' file, None where they are shown, and its text without line ends below."""
        path = chunks[0].path
        try:
            content = await self.files.read(path)
        except WorkspaceError:
            content = None
        if content is None:
            return None, ""

        def found(data: bytes) -> tuple[Chunk | None, str]:
            lines = [line.removesuffix("\r") for line in data.decode("utf-8", "replace").split("\n")]
            offered = (locate(each, lines) for each in pieces)
            shown = (range(each.first_line - 1, each.last_line) for each in chunks)
            imports = imports_chunk(path, lines, [*shown, *(rows for rows in offered if rows is not None)])
            return imports, "\n".join(lines).rstrip("\n")

        return await to_thread(found, content.data)

    def patch_bounds(self) -> PatchBounds:
        """Return the bounds of the task's diffs."""
        return self.scope.patch_bounds()

    @property
    def command_limit(self) -> float:
        """The seconds that a command may run, whatever the task has left."""
        return self.task.constraints.timeout_seconds or self.settings.limits.command_seconds

    def command_seconds(self, used: float = 0.0) -> float:
        """Return the seconds that a command may run, after others of the same call ran for `used` seconds."""
        left = seconds_left(self.state.run, used) if self.state.run is not None else None
        return self.command_limit if left is None else min(self.command_limit, left)

    async def check_file_count(self, paths: tuple[str, ...]) -> None:
        """Raise `PatchError` if the task would change more files than its constraints allow."""
        limit = self.task.constraints.max_files_changed
        if limit is None:
            return
        changed = {change.path for change in await self.workspace.changes(self.run.tree)} | set(paths)
        if len(changed) > limit:
            raise PatchError(
                f"{counted_text(len(changed), 'file')} would be changed, the task allows {limit}",
                advice="change fewer files: " + ", ".join(sorted(changed)),
            )
