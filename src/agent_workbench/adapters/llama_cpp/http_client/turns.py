"""Turns at a model server: as many answers at the same time as it has slots, first come, first served."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_workbench.adapters.llama_cpp.http_client.backoff import OnStatus

BUSY = "the model is answering another session; this one waits for its turn"


class ServerTurns:
    """The line of one process before one server.

    A server keeps requests in a line too, but the time in it would count as its silence, and none would be told.
    """

    def __init__(self) -> None:
        self._busy = 0
        self._line: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self, slots: int, on_status: OnStatus) -> AsyncIterator[None]:
        """Hold one of the `slots` (0: the server does not tell, so nobody waits) for as long as an answer takes."""
        if slots and (self._busy >= slots or self._line):
            on_status(BUSY)
            await self._wait()
        else:
            self._busy += 1
        try:
            yield
        finally:
            self._leave()

    async def _wait(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._line.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()  # the turn came together with the cancellation
            else:
                self._line.remove(place)
            raise

    def _leave(self) -> None:
        """Give the slot to the next in the line, or free it."""
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._busy -= 1
