"""Something that runs beside the moves; what is begun next takes its place."""

import asyncio
from collections.abc import Coroutine

from agent_workbench.core.background import in_background


class BackgroundTask:
    """At most one coroutine at a time; an error in it is a defect, and the event loop tells of it at once."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def start(self, doing: Coroutine[None, None, None]) -> None:
        """Begin, after what ran before was stopped."""
        await self.stop()
        self._task = in_background(doing)

    async def stop(self) -> None:
        """Stop what runs and wait until it has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
