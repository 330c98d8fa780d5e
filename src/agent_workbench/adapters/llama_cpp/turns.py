"""Waits for a model server: turns at its slots, and retry pauses while it is loading or busy."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agent_workbench.adapters.llama_cpp.server_answers import ServerError, model_error

OnStatus = Callable[[str], None]

_FIRST_SECONDS = 0.25
_LOADING_SECONDS = 2.0
_BUSY_SECONDS = 30.0

BUSY = "the model is answering another session; this one waits for its turn"


class Backoff:
    """Pauses between requests to the server at `address`; `deadline` is the event loop's time.

    Without `patient` the first pause raises instead.
    """

    def __init__(self, address: str, deadline: float, on_status: OnStatus, *, patient: bool = True) -> None:
        self._address = address
        self._deadline = deadline
        self._on_status = on_status
        self._since = asyncio.get_running_loop().time()
        self._next_seconds = _FIRST_SECONDS
        self._patient = patient

    async def pause(self, fault: ServerError, at_least_seconds: float = 0.0) -> None:
        """Sleep before the next attempt; raise the error if that is past the deadline or retrying cannot help."""
        now = asyncio.get_running_loop().time()
        seconds = max(self._next_seconds, at_least_seconds)
        if not (fault.passes and self._patient) or now + seconds >= self._deadline:
            error = model_error(fault, self._address)
            error.retry_after_seconds = seconds if fault.passes else 0.0
            raise error
        loading = fault.is_loading
        doing = "loads its model" if loading else "is busy"
        self._on_status(f"the server at {self._address} {doing} ({now - self._since:.0f} s)")
        self._next_seconds = min(self._next_seconds * 2, _LOADING_SECONDS if loading else _BUSY_SECONDS)
        await asyncio.sleep(seconds)


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
