"""Port `TaskQueue` on a folder of the user's repo: a file a task, under a lock, claimed with a lease.

What a worker must be able to rely on is in records outside of the repo; the files are the user's side of the queue.
An end is recorded first, and then the file is moved: after a crash in between nothing is done again.

Claims are in the state folder. Workers with another one, such as in a second container, know nothing of them.
"""

import asyncio
import fcntl
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from agent_workbench.core.errors import LockedError, UsageError
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState, TaskClaim
from agent_workbench.core.task_result import TaskResult, encode_result, no_task
from agent_workbench.subjects.queue.files_adapter import (
    SUFFIXES,
    QueueFiles,
    name_problem,
    shown_name,
    stem_of,
    stored_name,
)
from agent_workbench.subjects.queue.records_adapter import (
    QueueRecord,
    QueueRecords,
    ReadFacts,
    TrackedNames,
    WaitingTasks,
    has_no_file,
    is_draft,
)
from agent_workbench.system.atomic_files import make_directories, storage_error, write_all, write_atomically
from agent_workbench.system.folder_trees import read_regular

WRITING_SECONDS = 0.1
"""Time in which a file that is no task must not change before it is refused, or one that is gone not come back."""
Result = TypeVar("Result")

NAME = ".workers"
MAX_BYTES = 100
_TRIES = 10


class FolderQueue:
    """Implements `core.ports.task_queue.TaskQueue`. Its claims are free when its process dies, or at `close`."""

    def __init__(
        self,
        files: QueueFiles,
        records: QueueRecords,
        clock: Clock,
        read_facts: ReadFacts,
        tracked_names: TrackedNames,
    ) -> None:
        self._files = files
        self._records = records
        self._clock = clock
        self._leases = QueueLeases(records, clock)
        self._refused: list[tuple[str, str]] = []
        self.news = asyncio.Event()
        self._owner = QueueOwner(files, records.folder)
        self._waiting = WaitingTasks(files, records, read_facts, tracked_names)

    @property
    def path(self) -> str:
        """Path of the folder, relative to the repo."""
        return self._files.shown

    async def exists(self) -> bool:
        """Return True if the folder is there; raise `StorageError` if something else is in its place."""
        return await asyncio.to_thread(self._files.exists)

    def mark(self) -> tuple[int, int]:
        """Return what changes with each file that is queued and each change of a task's state; two `stat` calls.

        A claim that runs out, or whose process dies, does not change it.
        """
        return (self._files.mark(), self._records.mark())

    async def put(self, task: QueuedTask) -> bool:
        return await self._locked(lambda: self._put(task))

    async def claim(self, worker: str, lease_seconds: float, *, begun: bool = False) -> TaskClaim | None:
        return await self._locked(lambda: self._claim(worker, lease_seconds, begun=begun))

    async def renew(self, claim: TaskClaim, lease_seconds: float, session: SessionId = NO_SESSION) -> None:
        def renew() -> None:
            record = self._leases.checked(claim)
            self._records.save(replace(self._leases.leased(record, lease_seconds), session=session or record.session))

        await self._locked(renew)

    async def park(self, claim: TaskClaim, reason: str) -> None:
        await self._locked(lambda: self._records.save(_freed(self._leases.checked(claim), QueueState.PARKED, reason)))

    async def resume(self, task: str) -> QueueState:
        def resume() -> QueueState:
            record = self._waiting.named(task) or self._records.named(task)
            if record is None:
                raise _unknown(task, self.path)
            if record.state is not QueueState.PARKED:
                return record.state
            self._records.save(replace(record, state=QueueState.QUEUED, reason=""))
            return QueueState.QUEUED

        return await self._locked(resume)

    async def finish(self, claim: TaskClaim, state: QueueState, reason: str, result: TaskResult | None = None) -> None:
        if state not in {QueueState.DONE, QueueState.FAILED}:
            raise UsageError(f"a task does not end as {state}")

        def finish() -> None:
            record = self._records.find(claim.task.id)
            if record is not None and (record.to_file, record.fence, record.state) == (True, claim.fence, state):
                self._end(record)  # the disk was full when its file was to be moved
                return
            document = "" if result is None else encode_result(result)
            self._end(replace(_freed(self._leases.checked(claim), state, reason), result=document))

        await self._locked(finish)

    async def withdraw(self, task: str, reason: str) -> bool:
        return await self._locked(lambda: self._withdraw(task, reason))

    async def tasks(self, *states: QueueState) -> tuple[QueuedTask, ...]:
        found = await asyncio.to_thread(self._tasks)
        return tuple(each for each in found if not states or each.state in states)

    async def withdrew(self, task: str, session: SessionId) -> bool:
        """Return True if the task that the session works on was withdrawn: its file was removed."""

        def withdrew() -> bool:
            record = self._records.find(task)
            if record is None or record.session != session:
                return False
            return record.state is QueueState.WITHDRAWN or (not record.ended and self._is_withdrawn(record))

        return await asyncio.to_thread(withdrew)

    async def end_problem(self, _task: QueuedTask) -> str:
        return ""

    def refused(self) -> tuple[tuple[str, str], ...]:
        """Return the names of files that were no tasks, each with the reason: those since the last call."""
        found, self._refused = tuple(self._refused), []
        return found

    async def close(self) -> None:
        """Free the claims of this object."""
        await asyncio.to_thread(self._records.release)
        await asyncio.to_thread(self._owner.release)

    async def _locked(self, change: Callable[[], Result]) -> Result:
        def work() -> Result:
            with self._records.locked():
                return change()

        # A change that has begun ends, also when its caller is cancelled: it holds the lock.
        return await asyncio.shield(asyncio.to_thread(work))

    def _put(self, task: QueuedTask) -> bool:
        definition = _checked(task)
        task = replace(task, id=self._waiting.facts(task.definition, f"{task.id}{SUFFIXES[0]}").id or task.id)
        taken = self._records.find(task.id)
        if self._waiting.has(task.id) or self._files.has_any(task.id) or (taken is not None and not is_draft(taken)):
            return False
        named = (task.id, task.id + SUFFIXES[0], task.definition, task.origin, task.priority)
        record = QueueRecord(*named, depends_on=task.depends_on)
        self._records.save(record)
        return has_no_file(record) or self._files.create(record.name, definition)

    def _claim(self, worker: str, lease_seconds: float, *, begun: bool) -> TaskClaim | None:
        self._owner.hold()
        for record in self._records.open():
            if record.to_file:
                self._end(record)
        free, doubtful = [], []
        for record, problem in self._waiting.all():
            if problem or self._is_withdrawn(record):
                doubtful.append((record, problem, self._files.fingerprint(record.name)))
            elif (record.session or not begun) and (record.state is QueueState.QUEUED or self._leases.is_over(record)):
                free.append(record)
        if doubtful:
            time.sleep(WRITING_SECONDS)
        for record, problem, before in doubtful:
            if before == self._files.fingerprint(record.name):
                self._put_aside(record, problem)
        ready = (each for each in free if each.session or all(map(self._records.is_done, each.depends_on)))
        first = min(ready, key=_rank, default=None)
        if first is None:
            return None
        needed = tuple(past.id if (past := self._records.named(each)) else each for each in first.depends_on)
        claimed = {"state": QueueState.CLAIMED, "worker": worker, "fence": first.fence + 1, "reason": ""}
        taken = replace(first, depends_on=needed, **claimed)
        self._records.save(self._leases.leased(taken, lease_seconds))
        return TaskClaim(_task_of(taken), worker, taken.fence)

    def _withdraw(self, task: str, reason: str) -> bool:
        record = self._waiting.named(task)
        if record is None:
            if self._records.named(task) or self._files.has_any(task):
                return False
            raise _unknown(task, self.path)
        self._files.remove(record.name)  # first: a task without its file counts as withdrawn
        self._records.save(_freed(record, QueueState.WITHDRAWN, reason))
        return True

    def _tasks(self) -> tuple[QueuedTask, ...]:
        past = (*self._records.settled(), *(each for each in self._records.open() if each.ended))
        found = {record.id: record for record in past}
        for record, problem in self._waiting.all():
            gone = self._is_withdrawn(record)
            found[record.id] = _withdrawn(record) if gone else replace(record, reason=problem or record.reason)
        return tuple(map(_task_of, sorted(found.values(), key=_rank)))

    def _is_withdrawn(self, record: QueueRecord) -> bool:
        """Return True if a task's file was removed and nobody works on it now."""
        if has_no_file(record) or self._files.fingerprint(record.name) or not self._files.exists():
            return False
        return record.state is not QueueState.CLAIMED or self._leases.is_over(record)

    def _put_aside(self, record: QueueRecord, problem: str) -> None:
        """Move what is no task to `failed/`, with the problem; without one the task was withdrawn."""
        if not problem:
            self._records.save(_withdrawn(record))
            return
        result = encode_result(no_task(shown_name(record.name), problem, self._clock.now(), record.origin))
        if has_no_file(record):
            self._end(replace(_freed(record, QueueState.FAILED, problem), result=result))
        else:
            # Without a record: after a crash the file is refused again.
            self._files.file_away("failed", record.name, stored_name(record.name), None, result)
        self._refused.append((shown_name(record.name), problem))

    def _end(self, record: QueueRecord) -> None:
        """Record the end of a task, then move its file."""
        self._records.save(record)
        end = "done" if record.state is QueueState.DONE else "failed"
        filed = self._files.file_away(end, record.name, record.name, record.definition.encode(), record.result)
        self._records.save(replace(record, filed=filed))


def _rank(record: QueueRecord) -> tuple[int, str]:
    return (-record.priority, stem_of(record.name))


def _withdrawn(record: QueueRecord) -> QueueRecord:
    return _freed(record, QueueState.WITHDRAWN, "its file was removed")


def _freed(record: QueueRecord, state: QueueState, reason: str) -> QueueRecord:
    return replace(record, state=state, reason=reason, worker="", holder="", boot="", until=0.0, until_utc="")


def _task_of(record: QueueRecord) -> QueuedTask:
    return QueuedTask(
        record.id,
        record.definition,
        record.priority,
        record.state,
        record.session,
        record.reason,
        record.origin,
        record.depends_on,
        record.worker,
    )


def _checked(task: QueuedTask) -> bytes:
    """Return the definition of a task that can be a file; raise `UsageError` for any other."""
    if problem := name_problem(f"{task.id}{SUFFIXES[0]}") or ("" if stem_of(task.id + ".yaml") else "is empty"):
        raise UsageError(f"a queued task cannot be named {task.id!r}: the name {problem}")
    try:
        return task.definition.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the text of {task.id!r} holds half a character (a lone surrogate)") from error


def _unknown(task: str, path: str) -> UsageError:
    return UsageError(f"there is no task {task!r} in {path}", advice="`agent worker status` shows them")


class QueueLeases:
    """Leases of the claims in `records`."""

    def __init__(self, records: QueueRecords, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def leased(self, record: QueueRecord, lease_seconds: float) -> QueueRecord:
        """Return the record of a claim with a lease from now on, held by this process."""
        until_utc = datetime.fromisoformat(self._clock.now()) + timedelta(seconds=lease_seconds)
        return replace(
            record,
            holder=self._records.hold(),
            boot=self._records.boot,
            until=self._clock.monotonic_seconds() + lease_seconds,
            until_utc=until_utc.isoformat(),
        )

    def is_over(self, record: QueueRecord) -> bool:
        """Return True if a claim ran out, or its process is known to be dead."""
        return record.state is QueueState.CLAIMED and (self._is_late(record) or self._records.is_dead(record))

    def _is_late(self, record: QueueRecord) -> bool:
        if record.boot == self._records.boot:
            return record.until <= self._clock.monotonic_seconds()
        return datetime.fromisoformat(record.until_utc) <= datetime.fromisoformat(self._clock.now())

    def checked(self, claim: TaskClaim) -> QueueRecord:
        """Return the record of a claim; raise `LockedError` if the claim counts no more."""
        record = self._records.find(claim.task.id)
        held = record is not None and (record.state, record.worker, record.fence) == (
            QueueState.CLAIMED,
            claim.worker,
            claim.fence,
        )
        if record is None or not held or self._is_late(record):
            holder = record.worker if record is not None else ""
            raise LockedError(f"{claim.task.id} is not {claim.worker}'s any more", holder=holder)
        return record


class QueueOwner:
    """Shared lock on a file in the queue folder that names the state folder `state` by a random id. Calls block."""

    def __init__(self, files: QueueFiles, state: Path) -> None:
        self._files = files
        self._state = state
        self._descriptor = -1

    def hold(self) -> None:
        """Hold the lock until `release`; raise `LockedError` while a worker with another state folder lives."""
        if self._descriptor >= 0 or not self._files.exists():
            return
        own = self._own_id()
        descriptor = self._files.open_lock(NAME)
        try:
            for _ in range(_TRIES):
                if _lock(descriptor, fcntl.LOCK_EX):
                    os.ftruncate(descriptor, 0)
                    os.lseek(descriptor, 0, os.SEEK_SET)
                    write_all(descriptor, own)
                # Another worker may come in between; then the name is its own.
                if _lock(descriptor, fcntl.LOCK_SH) and os.pread(descriptor, MAX_BYTES, 0) == own:
                    self._descriptor, descriptor = descriptor, -1
                    return
        except OSError as error:
            raise storage_error(f"{self._files.shown}/{NAME} could not be locked", error) from error
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        raise LockedError(
            f"a worker with another state folder works on {self._files.shown}",
            advice="workers of one queue share a state folder (XDG_STATE_HOME, in containers the volume /state)",
        )

    def release(self) -> None:
        """Release the lock, if it is held."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    def _own_id(self) -> bytes:
        path = self._state / "id"
        try:
            make_directories(self._state)
            return read_regular(path, MAX_BYTES)
        except FileNotFoundError:
            write_atomically(path, secrets.token_hex(16).encode(), mode=0o600)
            return read_regular(path, MAX_BYTES)
        except OSError as error:
            raise storage_error(f"{path} could not be read", error) from error


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
