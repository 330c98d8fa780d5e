"""Bounds of a task: the files it may read and change, from its definition, the settings and the session's state."""

from pathlib import PurePosixPath
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.checks.judges import Protection, has_runner_settings
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch.paths import literal_glob, matches_glob
from agent_workbench.core.patch.values import FileContent, PatchBounds
from agent_workbench.core.plan import Task
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState, TaskRun

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
