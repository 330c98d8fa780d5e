"""The pasts of the folders that are searched: one for each repo, brought up to date behind the index."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent_workbench.adapters.retrieval.history.repo_history import History, Past
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports.workspace import Sources


class FolderHistories:
    """What a retriever asks; `file_of` tells where the past of a searched folder's repo is kept."""

    def __init__(self, file_of: Callable[[str], Path]) -> None:
        self._file_of = file_of
        self._of_file: dict[Path, History] = {}
        self._of_root: dict[str, History] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def of(self, root: str) -> Past | None:
        """Return the past of the folder `root`, None while it is not read."""
        history = self._of_root.get(root)
        return history.past if history else None

    def begin(self, sources: Sources) -> None:
        """Read in the background the commits that are new."""
        if sources.root not in self._running:
            self._running[sources.root] = in_background(self._update(sources))

    async def settled(self, root: str, seconds: float | None = None) -> None:
        """Return when nothing is read for this folder any more, or so many seconds have passed."""
        if root in self._running:
            await asyncio.wait({self._running[root]}, timeout=seconds)

    async def close(self) -> None:
        """End what runs in the background."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _update(self, sources: Sources) -> None:
        root = sources.root
        try:
            if root not in self._of_root:
                file = await asyncio.to_thread(self._file_of, root)
                self._of_root[root] = self._of_file.setdefault(file, History(file))
            # Git may be locked or broken at the moment: the code is searched without its past, or with what was read.
            with suppress(WorkbenchError):
                await self._of_root[root].update(sources)
        finally:
            del self._running[root]
