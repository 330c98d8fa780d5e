"""Lines from another machine that continue a journal: proved one by one, and joined to it all at once."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent_workbench.adapters.journal.line_format import decode_line
from agent_workbench.adapters.journal.session_files import JOURNAL, AppendOnlyFile, read_regular
from agent_workbench.core.errors import JournalError
from agent_workbench.core.ports.journal_copies import JournalEnd
from agent_workbench.system.atomic_files import make_directories, storage_error
from agent_workbench.system.locks import FileLock, describe_holder
from agent_workbench.system.regular_files import open_regular

_PART = "received.part"
_LOCK = "received.lock"
_WAIT_SECONDS = 60.0
_FIRST_KIND = "session_started"


class ReceivedLines:
    """`core.ports.journal_copies.IncomingLines` behind the journal in `directory`, whose end `find_end` returns.

    One process at a time receives lines.
    """

    def __init__(self, directory: Path, find_end: Callable[[], JournalEnd]) -> None:
        self._directory = directory
        self._part = directory / _PART
        self._lock = FileLock(directory / _LOCK, describe_holder())
        try:
            make_directories(directory)
            self._lock.acquire(wait_seconds=_WAIT_SECONDS)
            try:
                self.end = find_end()
                self._part.unlink(missing_ok=True)
                self._file = os.fdopen(open_regular(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")
            except BaseException:
                self._lock.release()
                raise
        except OSError as error:
            raise storage_error(f"{self._part} could not be made", error) from error
        self._seq, self._hash = self.end.seq, self.end.hash

    def add(self, data: bytes) -> str:
        """Take the next line and return its hash; raise `JournalError` if it does not follow."""
        line = decode_line(data)
        if line.seq != self._seq + 1:
            raise JournalError(f"seq is {line.seq}, {self._seq + 1} belongs here")
        if line.prev != self._hash:
            raise JournalError(f"event {line.seq} follows {line.prev[:12] or 'none'}, not {self._hash[:12] or 'none'}")
        if (line.kind == _FIRST_KIND) != (line.seq == 0):
            raise JournalError(f"kind of event {line.seq} is {line.kind}; {_FIRST_KIND} is first and only there")
        if line.seq == 0 and line.body.get("session") != self._directory.name.rpartition(".")[2]:
            raise JournalError(f"the journal is of session {str(line.body.get('session'))[:40]!r}")
        try:
            self._file.write(data + b"\n")
        except OSError as error:
            raise storage_error(f"{self._part} could not be written", error) from error
        self._seq, self._hash = line.seq, line.hash
        return line.hash

    def keep(self) -> None:
        """Make all lines a part of the journal, durably."""
        try:
            self._file.close()
            lines = read_regular(self._part)
        except OSError as error:
            raise storage_error(f"{self._part} could not be written", error) from error
        path = self._directory / JOURNAL
        journal = AppendOnlyFile(path, fresh=not path.exists())
        try:
            if lines:
                journal.append(lines)
        finally:
            journal.close()
        self.drop()

    def drop(self) -> None:
        """Remove what was not kept."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)
        self._lock.release()
