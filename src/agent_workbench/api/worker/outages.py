"""Outages: causes outside of a task that keep it from going on. The worker waits for their end."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from hashlib import sha256

from agent_workbench.api.worker.worker_log import WorkerLog

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
_JITTER = 0.25

Sleep = Callable[[float], Awaitable[None]]


class Cause(StrEnum):
    """Cause of an outage."""

    MODEL = "model"
    DISK = "disk"
    LOCK = "lock"


class Pauses:
    """Pauses that end early when the worker is to stop."""

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        self.stopping = asyncio.Event()
        self._sleep = sleep

    async def pause(self, seconds: float) -> None:
        """Sleep, or return at once when the worker stops."""
        sleeping = asyncio.ensure_future(self._sleep(seconds))
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({sleeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (sleeping, stopping):
                each.cancel()
                with suppress(asyncio.CancelledError):
                    await each


class Outages:
    """The causes that a worker waits for; each is logged once when it begins and once when it is over."""

    def __init__(self, log: WorkerLog, pauses: Pauses, worker: str) -> None:
        self._log = log
        self._pauses = pauses
        self._worker = worker
        self._known: set[Cause] = set()

    async def wait(self, cause: Cause, reason: str, attempt: int, task: str = "") -> None:
        """Say once what is waited for, and pause before the next attempt (the first is number 0)."""
        if cause not in self._known:
            self._known.add(cause)
            self._log.caution("waits", f"waiting for the {cause}: {reason}", task)
        await self._pauses.pause(pause_seconds(attempt, f"{self._worker} {task}"))

    def over(self, *causes: Cause) -> None:
        """Say that these causes are over, if they were known."""
        for cause in causes:
            if cause in self._known:
                self._known.discard(cause)
                self._log.note("continues", f"the {cause} is back")


def pause_seconds(attempt: int, seed: str) -> float:
    """Return a pause that doubles with each attempt up to a limit, a little different for each worker and task."""
    plain = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(attempt, 16))
    share: float = int.from_bytes(sha256(f"{seed} {attempt}".encode()).digest()[:4]) / 2**32
    return plain * (1 - _JITTER + 2 * _JITTER * share)
