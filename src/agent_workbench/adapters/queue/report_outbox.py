"""Outbox of results that are still to be reported: one file each, so that a crash or a silent forge loses none."""

import contextlib
from hashlib import sha256
from pathlib import Path

from agent_workbench.core.errors import StorageError
from agent_workbench.core.queue.result import TaskResult, decode_result, encode_result
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.regular_files import read_regular

_SUFFIX = ".json"
_MOST_BYTES = 8_000_000
_MOST_FILES = 1_000


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

    def drop(self, result: TaskResult) -> None:
        """Forget a result that was reported."""
        try:
            self._path(result).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(f"{self._path(result)} could not be removed", error) from error

    def pending(self) -> tuple[TaskResult, ...]:
        """Return what is still to be reported; a file that holds no result is passed over."""
        try:
            paths = sorted(path for path in self._folder.iterdir() if path.suffix == _SUFFIX)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise storage_error(f"{self._folder} could not be read", error) from error
        found = []
        for path in paths[:_MOST_FILES]:
            with contextlib.suppress(OSError, UnicodeError, StorageError):
                found.append(decode_result(read_regular(path, _MOST_BYTES).decode(), path.name))
        return tuple(found)

    def _path(self, result: TaskResult) -> Path:
        name = f"{result.task} {result.session}".encode("utf-8", "surrogatepass")
        return self._folder / f"{sha256(name).hexdigest()[:32]}{_SUFFIX}"
