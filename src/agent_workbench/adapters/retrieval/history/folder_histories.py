"""Commit histories of the searched folders: one for each repo, updated in the background."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent_workbench.adapters.retrieval.history.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.history.repo_history import RepoHistory
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports.workspace import Sources


class FolderHistories:
    """Histories by the root of a searched folder; `file_of` returns the file in which that of its repo is kept."""

    def __init__(self, file_of: Callable[[str], Path]) -> None:
        self._file_of = file_of
        self._of_file: dict[Path, RepoHistory] = {}
        self._of_root: dict[str, RepoHistory] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def of(self, root: str) -> CommitIndex | None:
        """Return the commits of the folder's repo, None until they were read."""
        history = self._of_root.get(root)
        return history.commit_index if history else None

    def begin(self, sources: Sources) -> None:
        """Read new commits in the background."""
        if sources.root not in self._running:
            self._running[sources.root] = in_background(self._update(sources))

    async def settled(self, root: str, seconds: float | None = None) -> None:
        """Wait until the folder's commits are read, at most `seconds`."""
        if root in self._running:
            await asyncio.wait({self._running[root]}, timeout=seconds)

    async def close(self) -> None:
        """Cancel the tasks in the background."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _update(self, sources: Sources) -> None:
        root = sources.root
        try:
            if root not in self._of_root:
                file = await asyncio.to_thread(self._file_of, root)
                self._of_root[root] = self._of_file.setdefault(file, RepoHistory(file))
            # Git may be locked or broken at the moment: code is searched without new commits.
            with suppress(WorkbenchError):
                await self._of_root[root].update(sources)
        finally:
            del self._running[root]
