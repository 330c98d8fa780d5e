"""A workspace over a plain folder, for what only lists and reads."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.core.repo.workspace import Checkpoint, Reset, WorkspaceFacts

_READS_ONLY = "a folder workspace lists and reads, and does nothing else"


class FolderWorkspace:
    """`core.ports.workspace.Workspace` over all files below `root`; `reads` are the paths that were read, in order."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.reads: list[str] = []

    @property
    def facts(self) -> WorkspaceFacts:
        return WorkspaceFacts(str(self._root), "agent/T-1", CommitId("0" * 40), "0" * 40)

    @property
    def root(self) -> str:
        return str(self._root)

    async def list_files(self) -> tuple[str, ...]:
        return await asyncio.to_thread(self._list)

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        self.reads += paths
        return await asyncio.to_thread(self._read_files, paths)

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        return ()

    async def read(self, path: str) -> FileContent | None:
        self.reads.append(path)
        return await asyncio.to_thread(self._read, path)

    async def links(self) -> Mapping[str, str]:
        return {}

    async def write(self, changes: Sequence[FileChange], parent_tree: str) -> str:
        raise WorkspaceError(_READS_ONLY)

    async def unapproved_changes(self, tree: str) -> tuple[FileChange, ...]:
        raise WorkspaceError(_READS_ONLY)

    async def put_back(self, tree: str, paths: Collection[str]) -> None:
        raise WorkspaceError(_READS_ONLY)

    async def reset(self, tree: str) -> Reset:
        raise WorkspaceError(_READS_ONLY)

    async def checkpoint(self, session: SessionId, seq: int, message: str) -> Checkpoint:
        raise WorkspaceError(_READS_ONLY)

    async def restore(self, commit: CommitId) -> None:
        raise WorkspaceError(_READS_ONLY)

    async def commit(self, tree: str, message: str) -> CommitId:
        raise WorkspaceError(_READS_ONLY)

    async def withdraw(self) -> None:
        raise WorkspaceError(_READS_ONLY)

    async def changes(self, tree: str) -> tuple[FileChange, ...]:
        raise WorkspaceError(_READS_ONLY)

    async def release(self, keep: bool) -> None:
        raise WorkspaceError(_READS_ONLY)

    def _list(self) -> tuple[str, ...]:
        found = (path for path in self._root.rglob("*") if path.is_symlink() or path.is_file())
        paths = (path.relative_to(self._root) for path in found)
        return tuple(sorted(path.as_posix() for path in paths if ".git" not in path.parts))

    def _read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for path in paths:
            with suppress(WorkspaceError, OSError):
                if (content := self._read(path)) is not None:
                    found[path] = content.data
        return found

    def _read(self, path: str) -> FileContent | None:
        file = self._root / path
        if any(each.is_symlink() for each in (file, *file.parents) if each.is_relative_to(self._root)):
            raise WorkspaceError(f"{path!r} is a symbolic link")
        if not file.is_file():
            return None
        return FileContent(file.read_bytes(), bool(file.stat().st_mode & 0o100))
