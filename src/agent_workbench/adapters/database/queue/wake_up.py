"""News of tasks that were chosen for this worker, by LISTEN and NOTIFY. What is missed is found by polling."""

import asyncio
from contextlib import suppress

from psycopg.sql import SQL, Identifier

from agent_workbench.adapters.database.connection import Database
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import StorageError


class WakeUp:
    """Listens in the background, again after an outage; `news` is set and `count` grows with each notification."""

    def __init__(self, database: Database, poll_seconds: float) -> None:
        self._database = database
        self._poll_seconds = poll_seconds
        self._listening: asyncio.Task[None] | None = None
        self.news = asyncio.Event()
        self.count = 0

    def listen(self, channels: list[str]) -> None:
        """Begin to listen; further calls change nothing."""
        if self._listening is None:
            self._listening = in_background(self._listen(channels), expected=(Exception,))

    async def close(self) -> None:
        """Stop listening."""
        task, self._listening = self._listening, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _listen(self, channels: list[str]) -> None:
        first, *others = channels
        while True:
            with suppress(StorageError):
                async with self._database.listener(first) as connection:
                    for each in others:
                        await connection.execute(SQL("LISTEN {}").format(Identifier(each)))
                    self.tell()  # what came before is not told again
                    async for _ in connection.notifies():
                        self.tell()
            await asyncio.sleep(self._poll_seconds)

    def tell(self) -> None:
        """Say that a look is worth it."""
        self.count += 1
        self.news.set()
