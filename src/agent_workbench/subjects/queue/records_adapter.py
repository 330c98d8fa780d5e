"""Records of queued tasks in the state folder: who works on each, in which session, and how it ended.

They lie outside of the repo, so that nothing the repo brings, and no command of the agent, can forge one.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_workbench.core.errors import StorageError
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.task_queue import QueueState
from agent_workbench.subjects.queue.files_adapter import stem_of
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.folder_trees import read_regular
from agent_workbench.system.locks import FileLock, describe_holder, lock_descriptor, lock_holder

LOCK_SECONDS = 30.0
MAX_BYTES = 8_000_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class QueueRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """State of one queued task. `name` is its file's name, `definition` its text when it was claimed first.

    `id` is the task's id, which may be another name than the file's.

    A claim has a `worker`, the file lock `holder` of its process, and an end: `until` on the monotonic clock of the
    `boot`, and `until_utc` for other machines. `result` is the document of its result; `filed` is where the ended task
    lies, empty while it is still to be moved. `depends_on` are the ids of the tasks that must be done first.
    """

    id: str
    name: str
    definition: str = ""
    origin: TaskOrigin = TaskOrigin.LOCAL
    priority: int = 0
    state: QueueState = QueueState.QUEUED
    session: SessionId = NO_SESSION
    reason: str = ""
    fence: int = 0
    worker: str = ""
    holder: str = ""
    boot: str = ""
    until: float = 0.0
    until_utc: str = ""
    result: str = ""
    filed: str = ""
    depends_on: tuple[str, ...] = ()

    @property
    def ended(self) -> bool:
        """True if the task is done, failed or withdrawn."""
        return self.state in {QueueState.DONE, QueueState.FAILED, QueueState.WITHDRAWN}

    @property
    def to_file(self) -> bool:
        """True if the task's end is recorded and its file was not moved yet."""
        return self.ended and self.state is not QueueState.WITHDRAWN and not self.filed


class QueueRecords:
    """Records in `folder`. Changes are made under `locked`; all calls block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._settled = folder / "settled"
        self._workers = folder / "workers"
        self._lock: FileLock | None = None
        self.holder = ""

    @cached_property
    def boot(self) -> str:
        """Identity of this start of the machine, empty where the system does not tell."""
        try:
            return _BOOT_ID.read_text().strip()
        except OSError:
            return ""

    def mark(self) -> int:
        """Return a number that changes with every record; 0 before the first."""
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the queue's lock, which one process at a time has."""
        descriptor = -1
        try:
            make_directories(self.folder)
            descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise storage_error(f"the lock of the queue in {self.folder} could not be opened", error) from error
        try:
            lock_descriptor(descriptor, self.folder / "lock", LOCK_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def open(self) -> list[QueueRecord]:
        """Return the records of the tasks that have not ended, or whose file is still to be moved."""
        return _all(self.folder)

    def settled(self) -> list[QueueRecord]:
        """Return the records of all other tasks. No claim reads them, so that a long past costs it nothing."""
        return [*{each.id: each for each in _all(self._settled)}.values()]

    def find(self, task: str) -> QueueRecord | None:
        """Return the newest record of a task, None if it has none."""
        name = _file_name(task)
        return _read(self.folder / name) or _read(self._settled / name)

    def named(self, task: str) -> QueueRecord | None:
        """Return the newest record of the task with this id or, if there is none, of that whose file has this name.

        Of the tasks of a file, an open one goes before the last ended.
        """
        if (found := self.find(task)) is not None:
            return found
        named = (each for each in self.open() if stem_of(each.name) == task)
        return next(named, None) or _read(self._settled / _file_name(f"/{task}"))

    def is_done(self, task: str) -> bool:
        """Return True if a task is done that others name by its id or its file's name."""
        return (record := self.named(task)) is not None and record.state is QueueState.DONE

    def save(self, record: QueueRecord) -> None:
        """Write a record durably."""
        name, document = _file_name(record.id), msgspec.json.encode(record)
        if not record.ended or record.to_file:
            write_atomically(self.folder / name, document, mode=0o600)
            return
        try:
            make_directories(self._settled)
            if (stem := stem_of(record.name)) != record.id:
                write_atomically(self._settled / _file_name(f"/{stem}"), document, mode=0o600)
            write_atomically(self._settled / name, document, mode=0o600)
            # After a crash in between, the end is recorded again from the open record.
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(f"{self.folder / name} could not be removed", error) from error

    def hold(self) -> str:
        """Return the name of the file lock that this object holds until `release`, or until its process dies.

        Called under `locked`.
        """
        if self._lock is None:
            name = f"{secrets.token_hex(16)}.lock"
            try:
                make_directories(self._workers)
            except OSError as error:
                raise storage_error(f"{self._workers} could not be created", error) from error
            self._forget_dead()
            lock = FileLock(self._workers / name, describe_holder())
            lock.acquire()
            self._lock, self.holder = lock, name
        return self.holder

    def is_dead(self, record: QueueRecord) -> bool:
        """Return True if the process of a claim is known to be gone: it was on this machine, and its lock is free."""
        if record.boot != self.boot or not self.boot or not record.holder:
            return False
        return not lock_holder(self._workers / Path(record.holder).name)

    def _forget_dead(self) -> None:
        """Remove the file locks of dead processes: what is missing counts as free. Nobody else makes one meanwhile."""
        with suppress(OSError):
            for path in self._workers.iterdir():
                if not lock_holder(path):
                    path.unlink(missing_ok=True)

    def release(self) -> None:
        """Release the file lock; the claims of this object are free then."""
        lock, self._lock = self._lock, None
        if lock is not None:
            with suppress(OSError):
                (self._workers / self.holder).unlink(missing_ok=True)
            lock.release()
            self.holder = ""


def _file_name(task: str) -> str:
    return f"{sha256(task.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"


def _all(folder: Path) -> list[QueueRecord]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(f"{folder} could not be read", error) from error
    return [record for path in paths if (record := _read(path)) is not None]


def _read(path: Path) -> QueueRecord | None:
    try:
        return msgspec.json.decode(read_regular(path, MAX_BYTES), type=QueueRecord)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(f"{path} could not be read", error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        advice = "move the file away: the worker then begins this task again"
        raise StorageError(f"{path} is not the record of a queued task: {error}", advice=advice) from error
