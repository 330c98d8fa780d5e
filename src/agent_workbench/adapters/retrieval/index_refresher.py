"""Scheduler of index refreshes: one at a time, shared by all who wait for it."""

import asyncio
from collections.abc import Callable, Sequence

from agent_workbench.adapters.retrieval.folder_index import FolderIndex
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports.workspace import Sources

Words = Callable[[], Sequence[str]]
"""Returns the words of a query; called only if they are needed."""


class IndexRefresher:
    """Refreshes one index. A caller that stops waiting does not cancel the refresh; `close` does.

    `on_change` is called after the first refresh and after each one that found changes.
    """

    def __init__(
        self, index: FolderIndex, on_change: Callable[[Sources, FolderIndex], None] = lambda _sources, _index: None
    ) -> None:
        self.index = index
        self._on_change = on_change
        self._notified = False
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """True if no refresh runs or waits."""
        return self._next is None and (self._running is None or self._running.done())

    async def refresh(self, sources: Sources, *, is_thorough: bool = False) -> None:
        """Wait until the index has the files as they are now. Raises what `sources` raises."""
        await asyncio.shield(self._begin_next(sources, is_thorough=is_thorough))

    async def refresh_for(self, sources: Sources, words: Words, *, is_thorough: bool = False) -> None:
        """Wait for a refresh; while many files are indexed, wait for those only that contain the words."""
        refresh = self._begin_next(sources, is_thorough=is_thorough)
        early = in_background(self.index.first_ready(sources, words), expected=(WorkbenchError,))
        try:
            await asyncio.wait({refresh, early}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            early.cancel()
        if refresh.done() or early.exception() is not None:
            await asyncio.shield(refresh)

    def begin(self, sources: Sources, *, is_thorough: bool = False) -> None:
        """Start a refresh unless one runs, without waiting for it."""
        if self.idle:
            self._begin_next(sources, is_thorough=is_thorough)

    async def close(self) -> None:
        """Cancel the refreshes."""
        tasks = [task for task in (self._next, self._running) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self.index.finder.close)
        self._next = self._running = None

    def _begin_next(self, sources: Sources, *, is_thorough: bool = False) -> "asyncio.Task[None]":
        """Return the next refresh; the current one may have listed the files before the last change."""
        if self._next is None:
            # Errors go to the callers that wait; without one, the next search meets the error again.
            self._next = in_background(
                self._after(self._running, sources, is_thorough=is_thorough), expected=(WorkbenchError,)
            )
        return self._next

    async def _after(self, before: "asyncio.Task[None] | None", sources: Sources, *, is_thorough: bool) -> None:
        if before is not None:
            await asyncio.wait({before})
        self._running, self._next = self._next, None
        changed = await self.index.refresh(sources, is_thorough=is_thorough)
        if changed or not self._notified:
            self._notified = True
            self._on_change(sources, self.index)
