"""A cancellable background task: at most one at a time, a new one replaces the one that runs."""

import asyncio
from collections.abc import Coroutine

from agent_workbench.core.background import in_background


class BackgroundTask:
    """Runs at most one coroutine. An error in it is a defect and goes to the event loop's exception handler at once."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def start(self, doing: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Stop the task that runs, start this one and return it."""
        await self.stop()
        self._task = in_background(doing)
        return self._task

    async def stop(self) -> None:
        """Cancel the task that runs and wait until it has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
