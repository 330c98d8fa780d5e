"""Loop of a worker: it looks for tasks as they come or on a schedule, claims them, and keeps a number going."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ExitCode, LockedError, SigningError, StorageError, error_text
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.task_queue import TaskClaim, TaskQueue
from agent_workbench.core.session_request import SessionEnd
from agent_workbench.core.workers import WorkerJob
from agent_workbench.subjects.worker.outage_calls import Cause, Outages, Pauses, cause_of
from agent_workbench.subjects.worker.parked_task_calls import ParkedTasks, RefusedFiles, WorkerLog
from agent_workbench.subjects.worker.schedule import Schedule

LEASE_SECONDS = 120.0
SHARED_LEASE_SECONDS = 40.0
"""Lease on machines that share a database: nobody sees there that a worker's process is gone."""
RENEWALS = 4
"""Renewals of a lease in the time that it lasts."""
MORE_BEGUN = 2
"""Tasks beyond the number of jobs, if they were begun before: somebody who decided does not wait for a free job."""
MOST_WAITING = 32
"""Tasks that may wait for the end of an outage while others, which need nothing of it, are done."""


RENEWAL_LOOK_SECONDS = 2.0
"""Seconds from one look to the next, whether a task that is worked on was withdrawn."""
TAKEN = "was claimed by another worker"
WITHDRAWN = "was withdrawn"
Withdrew = Callable[[str, SessionId], Awaitable[bool]]

LOOK_SECONDS = 0.2
THOROUGH_SECONDS = 5.0
EXPIRY_SECONDS = 60.0
EMPTY = "No tasks in queue"
# Ends that stop any other task too: nothing further is begun after one.
_ENDS_ALL = (ExitCode.ENVIRONMENT, ExitCode.INTERRUPTED)
# The first of these that a task ended with is that of the worker.
_BY_WEIGHT = (
    ExitCode.MODEL,
    *_ENDS_ALL,
    ExitCode.JOURNAL,
    ExitCode.USAGE,
    ExitCode.LOCKED,
    ExitCode.FAILED,
    ExitCode.PARKED,
)


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
        for _ in range(max(1, round(seconds / RENEWAL_LOOK_SECONDS))):
            await asyncio.sleep(min(seconds, RENEWAL_LOOK_SECONDS))
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


class LoopParts(Struct, frozen=True):
    """Parts of a worker that its loop moves. `mark` changes with the queue, and is cheap to ask for.

    `next_run` is told when the schedule is due, `changed` is called when a task has ended. `refusal` returns why
    nothing new is begun now, empty if it may be. `news` ends a pause.
    """

    dispatcher: Dispatcher
    parked: ParkedTasks
    outages: Outages
    pauses: Pauses
    log: WorkerLog
    clock: Clock
    mark: Callable[[], object]
    next_run: Callable[[str], None]
    changed: Callable[[], None]
    refused: RefusedFiles
    refusal: Callable[[], str] = lambda: ""
    news: asyncio.Event | None = None
    thorough_seconds: float = THOROUGH_SECONDS


class WorkerLoop:
    """Runs until the worker is stopped (`run`), or until one task was done (`once`)."""

    def __init__(self, parts: LoopParts, zone: tzinfo | None = None) -> None:
        self._parts = parts
        self._zone = zone
        self._looked = float("-inf")
        self._expired = float("-inf")
        self._attempt = 0
        self._mark: object = None
        self._refusal = ""

    async def once(self) -> SessionEnd:
        """Continue what was begun and can go on, do one task of the queue, and return the end.

        Raises the error that keeps any task from being worked on.
        """
        parts, ends = self._parts, list[SessionEnd]()
        await parts.parked.reject_expired()
        await parts.parked.resume_decided(thorough=True)
        begun = True
        while not parts.pauses.stopping.is_set():
            if not begun and (refusal := parts.refusal()):
                return sum_up([*ends, SessionEnd(ExitCode.DONE, f"nothing new is begun: {refusal}")])
            end = await parts.dispatcher.next_end(begun=begun)
            ends += [end] if end is not None else []
            if not begun or (end is not None and end.exit_code in _ENDS_ALL):
                break
            begun = end is not None
        ends = ends or list(parts.refused.take())
        if not ends and parts.parked.count:
            return SessionEnd(
                ExitCode.DONE, f"No task is free; {parts.parked.count} waiting for a person: `agent inbox`"
            )
        return sum_up(ends)

    async def run(self, schedule: Schedule | None = None) -> None:
        """Do tasks as they come (without a schedule) or at its times, until the worker is stopped.

        A run that is still going when the next one is due skips it. Raises as `once` does.
        """
        parts = self._parts
        due, opened = self._next(schedule, self._now()), schedule is None
        began = self._now()
        while not parts.pauses.stopping.is_set():
            if due is not None and not opened and self._now() >= due:
                opened, began, self._looked = True, due, float("-inf")
                parts.log.note("run", f"the run of {began:%H:%M} begins")
            empty = await self._look(new=opened)
            if schedule is not None and opened and empty and not parts.dispatcher.jobs:
                opened, due = False, self._after(schedule, began)
            await parts.pauses.pause(LOOK_SECONDS, parts.news)

    async def _look(self, *, new: bool) -> bool:
        """Start what can be done now; return True if the queue has nothing more. Outages are waited for."""
        parts = self._parts
        try:
            ended = await parts.dispatcher.collect()
            if ended:
                parts.changed()
            now = parts.clock.monotonic_seconds()
            thorough = bool(ended) or now >= self._looked + parts.thorough_seconds
            if parts.news is not None:
                parts.news.clear()
            mark = await asyncio.to_thread(parts.mark)
            refusal = parts.refusal()
            thorough = thorough or mark != self._mark or bool(self._refusal and not refusal)
            self._mark, self._refusal = mark, refusal
            if now >= self._expired + EXPIRY_SECONDS:
                self._expired = now
                await parts.parked.reject_expired()
            resumed = await parts.parked.resume_decided(thorough=thorough)
            if thorough:
                self._looked = now
            empty = await parts.dispatcher.take(new=new and not refusal) if resumed or thorough else False
            parts.refused.take()
        except (StorageError, SigningError) as error:
            cause = cause_of(error)
            await parts.outages.wait(cause, error_text(error), self._attempt)
            self._attempt += 1
            return False
        if self._attempt:
            self._attempt = 0
            parts.outages.over(Cause.DISK, Cause.DATABASE, Cause.KEY)
        return empty

    def _now(self) -> datetime:
        return datetime.fromisoformat(self._parts.clock.now())

    def _next(self, schedule: Schedule | None, moment: datetime) -> datetime | None:
        if schedule is None:
            return None
        due = schedule.next_after(moment, self._zone)
        self._parts.next_run(due.isoformat(timespec="minutes"))
        self._parts.log.note("scheduled", f"the next run is due at {due:%Y-%m-%d %H:%M %z}")
        return due

    def _after(self, schedule: Schedule, began: datetime) -> datetime | None:
        """Return the next time after a run; log the times that passed while it went on."""
        now, skipped, due = self._now(), 0, schedule.next_after(began, self._zone)
        while due <= now:
            skipped, due = skipped + 1, schedule.next_after(due, self._zone)
        if skipped:
            times = "1 run was" if skipped == 1 else f"{skipped} runs were"
            self._parts.log.caution("skipped", f"{times} skipped: that of {began:%H:%M} was still going")
        return self._next(schedule, now)


def sum_up(ends: Iterable[SessionEnd]) -> SessionEnd:
    """Return the end of several tasks: the gravest exit code, and what became of each."""
    found = tuple(ends)
    if not found:
        return SessionEnd(ExitCode.DONE, EMPTY)
    codes = {each.exit_code for each in found}
    gravest = next((code for code in _BY_WEIGHT if code in codes), ExitCode.DONE)
    return SessionEnd(gravest, "; ".join(each.reason for each in found))
