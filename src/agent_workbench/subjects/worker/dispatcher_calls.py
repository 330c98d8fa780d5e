"""Dispatcher of a worker: it claims tasks of a queue and keeps a number of them going at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import LockedError, StorageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.task_queue import TaskClaim, TaskQueue
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.workers import WorkerJob

LEASE_SECONDS = 120.0
SHARED_LEASE_SECONDS = 40.0
"""Lease on machines that share a database: nobody sees there that a worker's process is gone."""
RENEWALS = 4
"""Renewals of a lease in the time that it lasts."""
MORE_BEGUN = 2
"""Tasks beyond the number of jobs, if they were begun before: somebody who decided does not wait for a free job."""
MOST_WAITING = 32
"""Tasks that may wait for the end of an outage while others, which need nothing of it, are done."""


LOOK_SECONDS = 2.0
"""Seconds from one look to the next, whether a task that is worked on was withdrawn."""
TAKEN = "was claimed by another worker"
WITHDRAWN = "was withdrawn"
Withdrew = Callable[[str, SessionId], Awaitable[bool]]


class ClaimedWork(Protocol):
    """A claimed task that is worked on."""

    @property
    def job(self) -> WorkerJob:
        """The task as others see it."""

    async def run(self) -> SessionEnd:
        """Work to the end; raise what keeps any task from being worked on."""

    def stop(self, *, now: bool = False) -> None:
        """End between two steps; `now`: at once."""

    def lose(self, why: str = TAKEN) -> None:
        """Leave the task, which this worker does not have any more."""


class Dispatcher:
    """Works on at most `jobs` new tasks at a time, each made by `begin` from its claim."""

    def __init__(
        self,
        queue: TaskQueue,
        worker: str,
        begin: Callable[[TaskClaim], ClaimedWork],
        jobs: int = 1,
        lease_seconds: float = LEASE_SECONDS,
        withdrew: Withdrew | None = None,
    ) -> None:
        """Prepare the work; `withdrew` tells if a task was taken back, so that nobody waits for the next renewal."""
        self._queue = queue
        self._worker = worker
        self._begin = begin
        self.most_jobs = jobs
        self._lease_seconds = lease_seconds
        self._withdrew = withdrew
        self._running: dict[asyncio.Task[SessionEnd], ClaimedWork] = {}

    @property
    def jobs(self) -> tuple[WorkerJob, ...]:
        """The tasks that are worked on."""
        return tuple(work.job for work in self._running.values())

    @property
    def working(self) -> int:
        """The number of tasks that take a job: those that wait for an outage do not."""
        return sum(not each.waits_for for each in self.jobs)

    async def next_end(self, *, begun: bool) -> SessionEnd | None:
        """Work on a free task to its end, with `begun` on one that was begun before; return None if none is free."""
        claim = await self._queue.claim(self._worker, self._lease_seconds, begun=begun)
        if claim is None:
            return None
        working = self._start(claim)
        try:
            return await working
        finally:
            self._running.pop(working, None)

    async def take(self, *, new: bool) -> bool:
        """Start what was begun before and, with `new`, tasks for all free jobs; raise `StorageError`.

        Returns True if a new task was not free in the queue.
        """
        while self._has_room(self.most_jobs + MORE_BEGUN):
            if not await self._take(begun=True):
                break
        while new and self._has_room(self.most_jobs):
            if not await self._take(begun=False):
                return True
        return False

    def _has_room(self, most: int) -> bool:
        working = self.working
        return len(self._running) - working < MOST_WAITING and working < most

    async def collect(self) -> tuple[SessionEnd, ...]:
        """Return the ends since the last call; raise the error that ended one."""
        finished = [task for task in self._running if task.done()]
        for task in finished:
            del self._running[task]
        return tuple(task.result() for task in finished)

    def stop(self, *, now: bool = False) -> None:
        """End all tasks between two steps; `now`: at once."""
        for work in self._running.values():
            work.stop(now=now)

    async def settle(self) -> None:
        """Wait until no task is worked on; their errors were raised, or are not of interest any more."""
        while self._running:
            await asyncio.wait(self._running)
            self._running = {task: work for task, work in self._running.items() if not task.done()}

    async def _take(self, *, begun: bool) -> bool:
        claim = await self._queue.claim(self._worker, self._lease_seconds, begun=begun)
        if claim is not None:
            self._start(claim)
        return claim is not None

    def _start(self, claim: TaskClaim) -> "asyncio.Task[SessionEnd]":
        work = self._begin(claim)
        task = in_background(self._work(claim, work), expected=(Exception,))
        self._running[task] = work
        return task

    async def _work(self, claim: TaskClaim, work: ClaimedWork) -> SessionEnd:
        renewing = asyncio.create_task(self._renew(claim, work))
        try:
            return await work.run()
        finally:
            renewing.cancel()

    async def _is_withdrawn(self, claim: TaskClaim, work: ClaimedWork, seconds: float) -> bool:
        """Wait so long; return True at once if the task is withdrawn meanwhile."""
        if self._withdrew is None:
            await asyncio.sleep(seconds)
            return False
        for _ in range(max(1, round(seconds / LOOK_SECONDS))):
            await asyncio.sleep(min(seconds, LOOK_SECONDS))
            with suppress(StorageError):  # the renewal meets the same, and bears it
                if work.job.session and await self._withdrew(claim.task.id, work.job.session):
                    return True
        return False

    async def _renew(self, claim: TaskClaim, work: ClaimedWork) -> None:
        while True:
            try:
                if await self._is_withdrawn(claim, work, self._lease_seconds / RENEWALS):
                    work.lose(WITHDRAWN)
                    return
                await self._queue.renew(claim, self._lease_seconds)
            except LockedError:
                work.lose()
                return
            except StorageError:
                continue  # a full disk, no database: the claim holds for some more attempts
