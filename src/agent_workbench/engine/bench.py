"""What a tool has on its bench: the task, the workspace, and the ports it may use."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agent_workbench.core.errors import PatchError, WorkspaceError
from agent_workbench.core.patch import PatchBounds, matches_glob
from agent_workbench.core.plan import Task
from agent_workbench.core.ports import (
    Clock,
    Memory,
    Model,
    OnOutput,
    Plans,
    Retriever,
    Shell,
    Skills,
    Workspace,
    Workspaces,
)
from agent_workbench.core.settings import Settings
from agent_workbench.core.state import SessionState, TaskRun

PROTECTED_GLOBS = (".agent.yml", "memory/**", "skills/**")
MAX_DIFF_BYTES = 1_000_000
MAX_FILES = 100


@dataclass(frozen=True, slots=True)
class Ports:
    """The world, as a session is given it. `environment_for` tells what a command in a worktree needs set."""

    workspaces: Workspaces
    shell: Shell
    retriever: Retriever
    plans: Plans
    memory: Memory
    skills: Skills
    model: Model
    clock: Clock
    environment_for: Callable[[str], Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class Bench:
    """One task's bench at one moment: `state` is the session as it was when the tool was called."""

    ports: Ports
    settings: Settings
    task: Task
    workspace: Workspace
    state: SessionState
    on_output: OnOutput

    @property
    def run(self) -> TaskRun:
        """The task's run; tools are only called inside one."""
        if self.state.run is None:
            raise WorkspaceError("no task is being worked on")
        return self.state.run

    def may_read(self, path: str) -> bool:
        """Return whether the task's scope lets `path` be read."""
        return any(matches_glob(path, glob) for glob in self.task.scope.allowed_read_globs)

    def check_readable(self, path: str) -> None:
        """Raise `WorkspaceError` when the task's scope does not let `path` be read."""
        if not self.may_read(path):
            allowed = ", ".join(self.task.scope.allowed_read_globs)
            raise WorkspaceError(f"{path!r} is outside what this task may read", advice=f"allowed: {allowed}")

    def patch_bounds(self) -> PatchBounds:
        """Return what a diff of this task is held to."""
        memory = self.settings.memory.dir.strip("/")
        limits = self.task.constraints
        return PatchBounds(
            max_bytes=MAX_DIFF_BYTES if limits.max_diff_bytes is None else limits.max_diff_bytes,
            max_files=MAX_FILES if limits.max_files_changed is None else limits.max_files_changed,
            write_globs=self.task.scope.allowed_write_globs,
            protected_globs=(*PROTECTED_GLOBS, f"{memory}/**"),
        )

    def command_seconds(self) -> float:
        """Return how long a command may run."""
        return self.task.constraints.timeout_seconds or self.settings.limits.command_seconds

    async def check_file_count(self, paths: tuple[str, ...]) -> None:
        """Raise `PatchError` when the task would have changed more files than its constraints allow."""
        limit = self.task.constraints.max_files_changed
        if limit is None:
            return
        changed = {change.path for change in await self.workspace.changes(self.run.tree)} | set(paths)
        if len(changed) > limit:
            raise PatchError(
                f"{len(changed)} files would be changed, the task allows {limit}",
                advice="change fewer files: " + ", ".join(sorted(changed)),
            )
