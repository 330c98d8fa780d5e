"""Work that can be stopped: a running tool call by the user, a background task by a newer one."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TypeVar

from agent_workbench.core.background import in_background
from agent_workbench.core.ids import ProposalId

T = TypeVar("T")


class StoppedByUser(Exception):
    """The user stopped the call; everything it started has ended."""


class StoppableCall:
    """The tool call of one session. A stop counts until the call ends, also before its process has started."""

    def __init__(self) -> None:
        self._proposal: ProposalId | None = None
        self._stopped: ProposalId | None = None
        self._task: asyncio.Task[object] | None = None

    @contextmanager
    def begin(self, proposal: ProposalId) -> Iterator[None]:
        """Make the call for a proposal the one that can be stopped."""
        self._proposal = proposal
        try:
            yield
        finally:
            self._proposal = None

    def stop(self, proposal: ProposalId) -> None:
        """Stop the call for this proposal: now, or as soon as it begins."""
        self._stopped = proposal
        if self._proposal == proposal and self._task is not None:
            self._task.cancel()

    async def run(self, doing: Coroutine[None, None, T]) -> T:
        """Return the result of a part of the call; raise `StoppedByUser` once it has ended because of a stop."""
        if self._is_stopped():
            doing.close()
            raise StoppedByUser
        task = asyncio.create_task(doing)
        self._task = task
        try:
            return await task
        except asyncio.CancelledError:
            if self._is_stopped() and task.cancelled() and not _is_cancelled_too():
                raise StoppedByUser from None
            raise
        finally:
            self._task = None

    def _is_stopped(self) -> bool:
        return self._proposal is not None and self._stopped == self._proposal


def _is_cancelled_too() -> bool:
    """Return True if the session itself is being cancelled."""
    own = asyncio.current_task()
    return own is not None and own.cancelling() > 0


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
