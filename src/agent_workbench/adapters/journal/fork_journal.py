"""Journal of a fork: written in a hidden folder, which gets the session's name when all of it is there."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.session_files import JOURNAL, LOCK, AppendOnlyFile
from agent_workbench.adapters.journal.writer import LineComposer
from agent_workbench.core.events import Event, Recorded
from agent_workbench.system.atomic_files import make_directories, storage_error, sync_directory
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.locks import FileLock, describe_holder, lock_holder

UNFINISHED = ".fork-"
"""Prefix of the hidden folder; no session's name begins with it."""


class ForkedJournal:
    """`core.ports.stores.ForkJournal` of the session that will be at `directory`."""

    def __init__(self, directory: Path, redactor: Redactor, register: Callable[[Path], None]) -> None:
        """Prepare; nothing is touched yet. `register` is called with `directory` just before the session exists."""
        self._directory = directory
        self._hidden = directory.with_name(f"{UNFINISHED}{directory.name}")
        self._lock = FileLock(self._hidden / LOCK, describe_holder())
        self._redactor = redactor
        self._lines = LineComposer(self._hidden, redactor)
        self._register = register

    async def write(self, events: Sequence[tuple[int, str, Event]]) -> Recorded:
        """Write the first events (seq, time, event; one or more) durably and return the last.

        Raises `JournalError`, `StorageError`.
        """
        return await asyncio.to_thread(self._write, events)

    async def keep(self, seq: int, time: str, event: Event) -> None:
        """Write one more event and make the whole a session, durably."""
        await asyncio.to_thread(self._keep, seq, time, event)

    async def drop(self) -> None:
        """Remove everything that was written, unless it was kept."""
        await asyncio.to_thread(self._drop)

    def _write(self, events: Sequence[tuple[int, str, Event]]) -> Recorded:
        remove_unfinished_forks(self._hidden.parent)
        try:
            make_directories(self._hidden)
        except OSError as error:
            raise storage_error(f"{self._hidden} could not be made", error) from error
        self._lock.acquire()
        lines = [self._next(*each) for each in events]
        self._append(b"".join(line for line, _ in lines), fresh=True)
        return lines[-1][1]

    def _next(self, seq: int, time: str, event: Event) -> tuple[bytes, Recorded]:
        line, recorded = self._lines.next(seq, time, event)
        self._lines.advance(recorded)
        return line, recorded

    def _keep(self, seq: int, time: str, event: Event) -> None:
        line, _ = self._next(seq, time, event)
        self._append(line, fresh=False)
        self._register(self._directory)
        try:
            self._hidden.rename(self._directory)
            sync_directory(self._directory.parent)
        except OSError as error:
            raise storage_error(f"{self._directory} could not be made", error) from error
        self._lock.release()

    def _append(self, data: bytes, *, fresh: bool) -> None:
        file = AppendOnlyFile(self._hidden / JOURNAL, fresh=fresh)
        try:
            file.append(data)
        finally:
            file.close()

    def _drop(self) -> None:
        self._lock.release()
        _remove(self._hidden)


def remove_unfinished_forks(sessions_dir: Path) -> None:
    """Remove the hidden folders of forks whose process died."""
    try:
        left = [folder for folder in sessions_dir.iterdir() if folder.name.startswith(UNFINISHED)]
    except OSError:
        return  # no folder yet; one that cannot be read is reported when it is written to
    for folder in left:
        if not lock_holder(folder / LOCK):
            _remove(folder)


def _remove(folder: Path) -> None:
    check_record(folder)
    shutil.rmtree(folder, ignore_errors=True)
