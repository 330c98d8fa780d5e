"""Lock of a queue folder for the workers of one state folder.

Claims are in the state folder. Workers with another one, such as in a second container, know nothing of them.
"""

import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path

from agent_workbench.adapters.queue.queue_files import QueueFiles
from agent_workbench.core.errors import LockedError
from agent_workbench.system.atomic_files import make_directories, storage_error, write_all, write_atomically
from agent_workbench.system.regular_files import read_regular

NAME = ".workers"
MAX_BYTES = 100
_TRIES = 10


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
