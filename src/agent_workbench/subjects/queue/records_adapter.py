"""Records of queued tasks in the state folder, and the tasks that have not ended, by records and files.

They lie outside of the repo, so that nothing the repo brings, and no command of the agent, can forge one.
"""

import os
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError, StorageError, error_text
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.task_queue import QueueState
from agent_workbench.core.yaml_documents import DocumentError, decode_document
from agent_workbench.subjects.queue.files_adapter import (
    QueueFiles,
    UnreadableFile,
    folded,
    key_of,
    name_problem,
    stem_of,
)
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.folder_trees import read_regular
from agent_workbench.system.locks import FileLock, describe_holder, lock_descriptor, lock_holder

LOCK_SECONDS = 30.0
MAX_BYTES = 8_000_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

MOST_FILES = 1000
"""Files that are looked at, by name; the others come when these are done."""
ReadFacts = Callable[[str, str], "TaskFacts"]
"""Return the facts in a definition, of which the second text is the file's name; raise `PlanError`."""
TrackedNames = Callable[[], Collection[str] | None]
"""Return the names in the folder that git tracks, None if all of it belongs to another repository. Blocks."""


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


class TaskFacts(Struct, frozen=True):
    """Facts in a definition that order a queue: the task is done after those that it depends on, by its priority.

    `id` is the task's id (empty: the file's name without its suffix). With `sets_id` the text sets it, and no other
    text may have the same one, also after the task's end.
    """

    priority: int = 0
    depends_on: tuple[str, ...] = ()
    id: str = ""
    sets_id: bool = False


class _Queued(Struct, frozen=True):
    """A queued file: its name, its text, the facts in it, and why it is no task (empty: it is one)."""

    name: str
    definition: str = ""
    facts: TaskFacts = TaskFacts()
    problem: str = ""

    @property
    def id(self) -> str:
        """Id of the task."""
        return self.facts.id or stem_of(self.name)


class WaitingTasks:
    """The tasks in `files` and `records` that have not ended. A file that did not change is read once."""

    def __init__(
        self, files: QueueFiles, records: QueueRecords, read_facts: ReadFacts, tracked_names: TrackedNames
    ) -> None:
        self._files = files
        self._records = records
        self._read_facts = read_facts
        self._tracked_names = tracked_names
        self._known: dict[str, tuple[tuple[int, ...], _Queued]] = {}

    def all(self) -> Iterator[tuple[QueueRecord, str]]:
        """Yield the record of each task that has not ended, as it is or would be; with why it is no task."""
        queued = self._files.names()[:MOST_FILES]
        self._known = {name: known for name, known in self._known.items() if name in queued}
        records = self._records.open()
        moving = {each.name for each in records if each.to_file}
        active: dict[str, QueueRecord] = {}
        for record in sorted(records, key=is_draft, reverse=True):  # a claim goes before what was put under the name
            if not record.ended and (not is_draft(record) or record.name in queued):
                active[key_of(record.name)] = record
        tracked = _Tracked(self._tracked_names, self._files)
        holders: dict[str, str] = {folded(each.id): each.name for each in active.values() if not is_draft(each)}
        names: dict[str, str] = {}
        for name in queued:
            known = active.get(key_of(name))
            twin = names.setdefault(key_of(name), name) if known is None else known.name
            if twin != name:
                yield QueueRecord(name, name), f"{name}: {twin} is queued too, and has the same name"
            elif name not in moving and (known is None or is_draft(known)) and (file := self._look(name)) is not None:
                yield self._queued(file, known, holders, tracked)
        # Claimed and parked tasks go on without their files; those from elsewhere never had one.
        for record in active.values():
            if has_no_file(record) and record.fence == 0:
                yield record, self._text_problem(record)
            elif not is_draft(record):
                yield record, ""

    def named(self, task: str) -> QueueRecord | None:
        """Return the task that has not ended and has this id or, if there is none, whose file has this name."""
        waiting = [record for record, _ in self.all()]
        named = (each for each in waiting if stem_of(each.name) == task)
        return next((each for each in waiting if each.id == task), None) or next(named, None)

    def has(self, task: str) -> bool:
        """Return True if a queued file has this name or a task that has not ended this id, in whatever spelling."""
        names = {key_of(name) for name in self._files.names()}
        names |= {folded(record.id) for record, problem in self.all() if not problem}
        return folded(task) in names

    def facts(self, definition: str, name: str) -> TaskFacts:
        """Return the facts in a definition; those of a text that is no task are empty."""
        try:
            return self._read_facts(definition, name)
        except PlanError:
            return TaskFacts()

    def _queued(
        self, file: _Queued, draft: QueueRecord | None, holders: dict[str, str], tracked: "_Tracked"
    ) -> tuple[QueueRecord, str]:
        """Return the record that a file gets with its first claim, and why it is no task.

        `holders` are the files of the tasks that were looked at, by id. The number of claims of the id goes on.
        """
        former = self._records.find(file.id)
        origin = TaskOrigin.REPOSITORY if tracked.has(file.name) else TaskOrigin.LOCAL
        record = QueueRecord(
            file.id,
            file.name,
            file.definition,
            origin,
            (draft.priority if draft is not None else 0) or file.facts.priority,
            fence=former.fence if former is not None else 0,
            depends_on=file.facts.depends_on,
        )
        if file.problem:
            return record, file.problem
        holder = holders.setdefault(folded(file.id), file.name)
        problem = ""
        if holder != file.name:
            problem = f"{file.name}: the id {file.id} is that of {holder}, which is queued too"
        elif file.facts.sets_id and former is not None and former.ended:
            problem = f"{file.name}: {file.id} is {former.state} already; to do it again, give it another `id`"
        return (replace(record, id=file.name), problem) if problem else (record, "")

    def _text_problem(self, record: QueueRecord) -> str:
        try:
            self._read_facts(record.definition, record.name)
        except PlanError as error:
            return error_text(error)
        return ""

    def _look(self, name: str) -> _Queued | None:
        """Return a queued file, None if it is gone; one that did not change is not read again."""
        print_ = self._files.fingerprint(name)
        if not print_:
            return None
        known = self._known.get(name)
        if known is None or known[0] != print_:
            known = self._known[name] = (print_, self._read(name))
        return known[1]

    def _read(self, name: str) -> _Queued:
        if problem := name_problem(name):
            return _Queued(name, problem=f"its name {problem}")
        try:
            data = self._files.read(name)
            text = decode_document(data or b"")
            return _Queued(name, text, self._read_facts(text, name))
        except UnreadableFile as problem:
            return _Queued(name, problem=f"{name} {problem}")
        except DocumentError as fault:
            return _Queued(name, problem=fault.in_file(name))
        except PlanError as error:
            return _Queued(name, problem=error_text(error))


class _Tracked:
    """The names that git tracks, asked for once and only if there is a file."""

    def __init__(self, names: TrackedNames, files: QueueFiles) -> None:
        self._ask = names
        self._files = files
        self._names: frozenset[str] | None = None
        self._asked = False

    def has(self, name: str) -> bool:
        """Return True if git tracks this name, in whatever spelling, or if another repository holds the folder."""
        if not self._asked:
            names = None if self._files.in_other_repo() else self._ask()
            self._names = None if names is None else frozenset(map(folded, names))
            self._asked = True
        return self._names is None or folded(name) in self._names


def has_no_file(record: QueueRecord) -> bool:
    """Return True if a task was put by something else than a file, so that its origin is known from here alone."""
    return record.origin not in {TaskOrigin.LOCAL, TaskOrigin.REPOSITORY}


def is_draft(record: QueueRecord) -> bool:
    """Return True if a task was put and never claimed; its file is what counts."""
    return record.state is QueueState.QUEUED and record.fence == 0 and record.origin is TaskOrigin.LOCAL
