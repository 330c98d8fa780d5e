"""What a task may read and change, known without any workspace: from its definition, the settings and its record."""

from pathlib import PurePosixPath
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.patch import FileContent, PatchBounds, matches_glob
from agent_workbench.core.patch.globs import literal_glob
from agent_workbench.core.plan import Task
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState, TaskRun

PROTECTED_GLOBS = (
    # what the workbench obeys
    ".agent.yml",
    "memory/**",
    "skills/**",
    "tasks/queue/**",
    # what agents and their hosts execute or send: skills, hooks, servers, keys
    "**/.agents/**",
    "**/.claude/**",
    "**/.mcp.json",
    "**/.env",
    "**/.env.local",
)
"""Files that no diff may change; a name with a wildcard would be offered by the grammar of new files."""
MAX_DIFF_BYTES = 1_000_000
MAX_FILES = 100


class Files(Protocol):
    """The files that a diff is about, in a workspace or in a recorded tree. Paths are repo-relative POSIX."""

    async def list_files(self) -> tuple[str, ...]:
        """Return the paths of all files, sorted."""

    async def read(self, path: str) -> FileContent | None:
        """Return a regular file's content, None where there is none; raise `WorkspaceError`."""


class Scope(Struct, frozen=True):
    """One task's bounds at one moment of a session."""

    settings: Settings
    task: Task
    state: SessionState

    @property
    def run(self) -> TaskRun:
        """The task's run; raise `WorkspaceError` where there is none."""
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
        folders = (self.settings.memory.dir, *self.settings.skills.dirs)
        limits = self.task.constraints
        return PatchBounds(
            max_bytes=MAX_DIFF_BYTES if limits.max_diff_bytes is None else limits.max_diff_bytes,
            max_files=MAX_FILES if limits.max_files_changed is None else limits.max_files_changed,
            write_globs=self.task.scope.allowed_write_globs,
            protected_globs=(*PROTECTED_GLOBS, *map(_below, folders)),
        )


def _below(folder: str) -> str:
    """Return the glob of all files in a folder of the repo."""
    return f"{literal_glob(str(PurePosixPath(folder)))}/**"
