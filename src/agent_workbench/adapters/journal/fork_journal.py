"""A new session's journal that is there whole or not at all: made in a folder nobody looks into, then renamed."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_workbench.adapters.journal.line_composer import LineComposer
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.session_files import JOURNAL, LOCK, AppendedFile
from agent_workbench.core.events import Event, Recorded
from agent_workbench.system.atomic_files import make_directories, storage_error, sync_directory
from agent_workbench.system.locks import FileLock, describe_holder, lock_holder

UNFINISHED = ".fork-"
"""How the folder's name begins while it is made; no session's name begins so."""


class ForkedJournal:
    """The journal of a session to come at `directory`; satisfies `core.ports.stores.ForkJournal`."""

    def __init__(self, directory: Path, redactor: Redactor, begun_here: Callable[[Path], None]) -> None:
        """Prepare; nothing is touched yet. `begun_here` is told of the folder just before it has its name."""
        self._directory = directory
        self._making = directory.with_name(f"{UNFINISHED}{directory.name}")
        self._lock = FileLock(self._making / LOCK, describe_holder())
        self._redactor = redactor
        self._lines = LineComposer(self._making, redactor)
        self._begun_here = begun_here

    async def write(self, events: Sequence[tuple[int, str, Event]]) -> Recorded:
        """Write the first events (seq, time, event; one or more) durably and return the last.

        They are no session before `keep`. Raises `JournalError`, `StorageError`.
        """
        return await asyncio.to_thread(self._write, events)

    async def keep(self, seq: int, time: str, event: Event) -> None:
        """Write the last of the first events, and make the whole a session that can be opened."""
        await asyncio.to_thread(self._keep, seq, time, event)

    async def drop(self) -> None:
        """Leave nothing of what was written, unless it was kept."""
        await asyncio.to_thread(self._drop)

    def _write(self, events: Sequence[tuple[int, str, Event]]) -> Recorded:
        sweep(self._making.parent)
        try:
            make_directories(self._making)
        except OSError as error:
            raise storage_error(f"{self._making} could not be made", error) from error
        self._lock.acquire()
        lines = [self._next(*each) for each in events]
        self._append(b"".join(line for line, _ in lines), fresh=True)
        return lines[-1][1]

    def _next(self, seq: int, time: str, event: Event) -> tuple[bytes, Recorded]:
        line, recorded = self._lines.next(seq, time, event)
        self._lines.went_on(recorded)
        return line, recorded

    def _keep(self, seq: int, time: str, event: Event) -> None:
        line, _ = self._next(seq, time, event)
        self._append(line, fresh=False)
        self._begun_here(self._directory)
        try:
            self._making.rename(self._directory)
            sync_directory(self._directory.parent)
        except OSError as error:
            raise storage_error(f"{self._directory} could not be made", error) from error
        self._lock.release()

    def _append(self, data: bytes, *, fresh: bool) -> None:
        file = AppendedFile(self._making / JOURNAL, fresh=fresh)
        try:
            file.append(data)
        finally:
            file.close()

    def _drop(self) -> None:
        self._lock.release()
        _remove(self._making)


def sweep(sessions_dir: Path) -> None:
    """Remove what is left of journals whose making was killed."""
    try:
        left = [folder for folder in sessions_dir.iterdir() if folder.name.startswith(UNFINISHED)]
    except OSError:
        return  # there is no folder yet; one that cannot be read will be heard of when it is written to
    for folder in left:
        if not lock_holder(folder / LOCK):
            _remove(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
