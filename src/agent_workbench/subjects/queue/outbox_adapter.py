"""Outbox of results that are still to be reported: one file each, so that a crash or a silent forge loses none.

A result is put here before the queue records it, and confirmed afterwards.
"""

import contextlib
from hashlib import sha256
from pathlib import Path

from agent_workbench.core.errors import StorageError
from agent_workbench.core.task_result import TaskResult, decode_result, encode_result
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import read_regular

_SUFFIX, _CONFIRMED = ".json", ".recorded.json"
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
                result = decode_result(read_regular(path, _MOST_BYTES).decode(), path.name)
                found.append((result, path.name.endswith(_CONFIRMED)))
        return tuple(found)

    def _path(self, result: TaskResult) -> Path:
        name = f"{result.task} {result.session}".encode("utf-8", "surrogatepass")
        return self._folder / f"{sha256(name).hexdigest()[:32]}{_SUFFIX}"
