"""Notifications of the database (`LISTEN`), by one connection for all who wait in this process."""

import asyncio
from contextlib import suppress

from agent_workbench.adapters.database.connection import Database
from agent_workbench.core.errors import StorageError

RETRY_SECONDS = 1.0


class Notifications:
    """Counts of the notifications on a channel, by payload; a connection that was lost and opened again raises all."""

    def __init__(self, database: Database, channel: str) -> None:
        self._database = database
        self._channel = channel
        self._counts: dict[str, int] = {}
        self._gaps = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.listening = False

    def listen(self) -> None:
        """Begin to listen, unless that is done."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())

    def count(self, payload: str) -> int:
        """Return a number that grows with each notification that was, or may have been, about the payload."""
        return self._counts.setdefault(payload, 0) + self._gaps

    async def wait(self, payload: str, count: int, seconds: float) -> None:
        """Return when `count` is not the number of the payload any more, or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.count(payload) == count:
                    await self._news.wait()

    async def close(self) -> None:
        """Stop listening; a later `listen` begins again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _listen(self) -> None:
        try:
            while True:
                with suppress(StorageError):
                    async with self._database.listener(self._channel) as connection:
                        self.listening = True
                        self._gaps += 1
                        self._wake()
                        async for each in connection.notifies():
                            if each.payload in self._counts:  # anybody can notify, of anything
                                self._counts[each.payload] += 1
                                self._wake()
                self.listening = False
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            self.listening = False

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
