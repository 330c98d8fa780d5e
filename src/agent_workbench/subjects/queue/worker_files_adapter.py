"""Files of workers: the state of each living one, locked by it, and the results that are still to be reported.

A result is put here before the queue records it, and confirmed afterwards.
"""

import contextlib
import os
from hashlib import sha256
from itertools import count
from pathlib import Path

import msgspec

from agent_workbench.core.errors import LockedError, StorageError, TrustError
from agent_workbench.core.task_result import TaskResult, decode_result, encode_result
from agent_workbench.core.workers import WorkerState
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import read_regular
from agent_workbench.system.locks import FileLock, describe_holder, lock_holder

_LOCK, _STATE, _NAMES = ".lock", ".json", "names"
_MOST_BYTES = 1_000_000

_SUFFIX, _CONFIRMED = ".json", ".recorded.json"
_MOST_RESULT_BYTES = 8_000_000
_MOST_FILES = 1_000


class WorkerFiles:
    """Files `<name>.lock` and `<name>.json` in `folder`; a worker is alive while its lock is held. All calls block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: FileLock | None = None
        self._name_lock: FileLock | None = None
        self._name = ""

    def begin(self, name: str) -> None:
        """Take the lock of a worker that starts; raise `StorageError`, `LockedError`."""
        try:
            make_directories(self._folder)
        except OSError as error:
            raise storage_error(f"{self._folder} could not be created", error) from error
        lock = FileLock(self._folder / f"{name}{_LOCK}", describe_holder())
        lock.acquire()
        self._lock, self._name = lock, name

    def take_name(self, wanted: str) -> str:
        """Return the name that the worker keeps until its end: `wanted`, or with a number if a living one has it."""
        folder = self._folder / _NAMES
        try:
            make_directories(folder)
        except OSError as error:
            raise storage_error(f"{folder} could not be created", error) from error
        for number in count(1):
            name = wanted if number == 1 else f"{wanted}-{number}"
            lock = FileLock(folder / f"{name}{_LOCK}", describe_holder())
            try:
                lock.acquire()
            except LockedError:
                continue
            self._name_lock = lock
            return name
        raise AssertionError

    def write(self, state: WorkerState) -> None:
        """Replace the state that others read; raise `StorageError`."""
        write_atomically(self._folder / f"{self._name}{_STATE}", msgspec.json.encode(state), mode=0o600)

    def end(self) -> None:
        """Remove the state and release the locks."""
        if self._name_lock is not None:
            self._name_lock.release()
            self._name_lock = None
        if self._lock is None:
            return
        with contextlib.suppress(OSError):
            (self._folder / f"{self._name}{_STATE}").unlink(missing_ok=True)
            (self._folder / f"{self._name}{_LOCK}").unlink(missing_ok=True)
        self._lock.release()
        self._lock = None

    def living(self) -> tuple[WorkerState, ...]:
        """Return the state of each living worker, the oldest first; files of dead ones are removed."""
        found = []
        for name in self._names():
            try:
                alive = bool(lock_holder(self._folder / f"{name}{_LOCK}"))
            except (StorageError, LockedError):
                continue
            if not alive:
                self._remove(name)
            elif (state := _read(self._folder / f"{name}{_STATE}")) is not None:
                found.append(state)
        return tuple(sorted(found, key=lambda each: (each.since, each.name)))

    def _names(self) -> list[str]:
        try:
            with os.scandir(self._folder) as entries:
                return sorted(each.name.removesuffix(_LOCK) for each in entries if each.name.endswith(_LOCK))
        except OSError:
            return []

    def _remove(self, name: str) -> None:
        """Remove what a dead worker left, unless another process does, or holds the lock meanwhile.

        Without a state the lock may be one that a worker is about to take.
        """
        if not (self._folder / f"{name}{_STATE}").exists():
            return
        lock = FileLock(self._folder / f"{name}{_LOCK}", describe_holder())
        with contextlib.suppress(LockedError, StorageError, TrustError, OSError), lock:
            (self._folder / f"{name}{_STATE}").unlink(missing_ok=True)
            (self._folder / f"{name}{_LOCK}").unlink(missing_ok=True)


def _read(path: Path) -> WorkerState | None:
    """Return a state, None if there is none yet."""
    try:
        return msgspec.json.decode(read_regular(path, _MOST_BYTES), type=WorkerState)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None


class ReportOutbox:
    """Results in `folder`, which only this user can write. All calls block and raise `StorageError`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, result: TaskResult) -> None:
        """Keep a result durably until `drop`; one of the same task and session is replaced."""
        try:
            make_directories(self._folder)
        except OSError as error:
            raise storage_error(f"{self._folder} could not be created", error) from error
        write_atomically(self._path(result), encode_result(result).encode(), mode=0o600)

    def confirm(self, result: TaskResult) -> None:
        """Note that the queue recorded a result; one that was dropped is no error."""
        path = self._path(result)
        check_record(path)
        try:
            path.replace(path.with_suffix(_CONFIRMED))
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(f"{path} could not be renamed", error) from error

    def drop(self, result: TaskResult) -> None:
        """Forget a result that was reported."""
        path = self._path(result)
        check_record(path)
        try:
            for each in (path, path.with_suffix(_CONFIRMED)):
                each.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(f"{path} could not be removed", error) from error

    def pending(self) -> tuple[tuple[TaskResult, bool], ...]:
        """Return what is still to be reported, each with whether it is confirmed; other files are passed over."""
        try:
            paths = sorted(path for path in self._folder.iterdir() if path.suffix == _SUFFIX)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise storage_error(f"{self._folder} could not be read", error) from error
        found = []
        for path in paths[:_MOST_FILES]:
            with contextlib.suppress(OSError, UnicodeError, StorageError):
                result = decode_result(read_regular(path, _MOST_RESULT_BYTES).decode(), path.name)
                found.append((result, path.name.endswith(_CONFIRMED)))
        return tuple(found)

    def _path(self, result: TaskResult) -> Path:
        name = f"{result.task} {result.session}".encode("utf-8", "surrogatepass")
        return self._folder / f"{sha256(name).hexdigest()[:32]}{_SUFFIX}"
