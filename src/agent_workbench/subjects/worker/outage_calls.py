"""Outages: causes outside of a task that keep it from going on. The worker waits for their end."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from hashlib import sha256

from msgspec import Struct, field

from agent_workbench.core.errors import DatabaseDownError, SigningError, StorageError, error_text
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
OTHERS_SECONDS = 300.0
_JITTER = 0.25

Sleep = Callable[[float], Awaitable[None]]


class Cause(StrEnum):
    """Cause of an outage."""

    MODEL = "model"
    DISK = "disk"
    LOCK = "lock"
    DATABASE = "database"
    KEY = "signing key"


def cause_of(error: StorageError | SigningError) -> Cause:
    """Return what keeps the queue from answering."""
    if isinstance(error, SigningError):
        return Cause.KEY
    return Cause.DATABASE if isinstance(error, DatabaseDownError) else Cause.DISK


class Pauses:
    """Pauses that end early when the worker is to stop."""

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        self.stopping = asyncio.Event()
        self._sleep = sleep

    async def pause(self, seconds: float, until: asyncio.Event | None = None) -> None:
        """Sleep, or return at once when the worker stops, or `until` is set."""
        ends = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self.stopping.wait())]
        if until is not None:
            ends.append(asyncio.ensure_future(until.wait()))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.cancel()
            # Unlike `await each`, this does not swallow a cancellation of the pause itself.
            await asyncio.wait(ends)


class Outages:
    """The causes that a worker waits for; each is logged once when it begins and once when it is over.

    The task that met a cause first tries again and again; the others go on when it is over, or try now and then.
    """

    def __init__(self, log: WorkerLog, pauses: Pauses, worker: str) -> None:
        self._log = log
        self._pauses = pauses
        self._worker = worker
        self._known: dict[tuple[Cause, str], _Outage] = {}

    async def wait(self, cause: Cause, reason: str, attempt: int, task: str = "") -> None:
        """Say once what is waited for, and pause before the next attempt (the first is number 0)."""
        key = _key(cause, task)
        if key not in self._known:
            self._known[key] = _Outage(task)
            self._log.caution("waits", f"waiting for the {cause}: {reason}", task)
        outage = self._known[key]
        if outage.first == task:
            await self._pauses.pause(pause_seconds(attempt, f"{self._worker} {task}"))
        else:
            await self._pauses.pause(OTHERS_SECONDS, outage.over)

    async def retry(self, reason: str, attempt: int, task: str) -> None:
        """Say what went wrong, and pause before the next attempt at a task that its own workspace refuses."""
        self._log.caution("retries", f"tried again: {reason}", task)
        await self._pauses.pause(pause_seconds(attempt, f"{self._worker} {task}"))

    async def retry_database(self, begin: Callable[[], Awaitable[None]], *, once: bool) -> None:
        """Begin; unless the worker works `once`, wait while the database does not answer."""
        attempt = 0
        while not self._pauses.stopping.is_set():
            try:
                await begin()
            except DatabaseDownError as error:
                if once:
                    raise
                await self.wait(Cause.DATABASE, error_text(error), attempt)
                attempt += 1
            else:
                self.over(Cause.DATABASE)
                return

    def over(self, *causes: Cause, task: str = "") -> None:
        """Say that these causes are over, if they were known; the tasks that wait for them go on."""
        for cause in causes:
            if (outage := self._known.pop(_key(cause, task), None)) is not None:
                outage.over.set()
                self._log.note("continues", f"the wait for the {cause} is over", task)


def _key(cause: Cause, task: str) -> tuple[Cause, str]:
    """Return what an outage is known by: a lock may hold one task only, everything else concerns all."""
    return cause, task if cause is Cause.LOCK else ""


class _Outage(Struct):
    """An outage: the task that met it `first`, and the event of its end."""

    first: str
    over: asyncio.Event = field(default_factory=asyncio.Event)


def pause_seconds(attempt: int, seed: str) -> float:
    """Return a pause that doubles with each attempt up to a limit, a little different for each worker and task."""
    plain = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(attempt, 16))
    share: float = int.from_bytes(sha256(f"{seed} {attempt}".encode()).digest()[:4]) / 2**32
    return plain * (1 - _JITTER + 2 * _JITTER * share)
