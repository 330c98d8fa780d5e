"""Reader of a journal that another process writes: each event once, as soon as its line is whole."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.journal.blobs import Blobs
from agent_workbench.adapters.journal.reader import LineProver
from agent_workbench.adapters.journal.session_files import JOURNAL
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events import Recorded
from agent_workbench.core.events.output_digests import with_digests
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.regular_files import open_regular

POLL_SECONDS = 0.25


class JournalFollower:
    """Follows the journal in a folder from its first line on; the chain of hashes is proved as it is read."""

    def __init__(self, directory: Path, poll_seconds: float = POLL_SECONDS) -> None:
        """Follow the session in `directory`; nothing is opened yet."""
        self._path = directory / JOURNAL
        self._poll_seconds = poll_seconds
        self._prover = LineProver(Blobs(directory))
        self._offset = 0
        self._identity: tuple[int, int] | None = None

    async def events(self, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        """Yield the events after `after_seq`, then each new one, until the caller stops.

        Raises `JournalError` for a line that does not fit, and for a journal that was removed, replaced or cut;
        `StorageError` if it cannot be read.
        """
        while True:
            found = await asyncio.to_thread(self._read)
            for recorded in found:
                if recorded.seq > after_seq:
                    yield recorded
            if not found:
                await asyncio.sleep(self._poll_seconds)

    def _read(self) -> tuple[Recorded, ...]:
        """Return the events of the lines that are whole now and were not read before."""
        try:
            with os.fdopen(open_regular(self._path), "rb") as file:
                self._check(os.fstat(file.fileno()))
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            raise JournalError(f"there is no {self._path}") from None
        except OSError as error:
            raise storage_error(f"{self._path} could not be read", error) from error
        whole = text[: text.rfind(b"\n") + 1]
        try:
            found = tuple(self._prover.prove(line) for line in whole.split(b"\n")[:-1])
        except JournalError as error:
            raise JournalError(f"{self._path}: {error}", advice=error.advice) from error
        self._offset += len(whole)
        return tuple(replace(each, event=with_digests(each.event)) for each in found)

    def _check(self, facts: os.stat_result) -> None:
        """Raise `JournalError` if the file is another one than before, or shorter than what was read of it."""
        identity = (facts.st_dev, facts.st_ino)
        if self._identity not in {None, identity} or facts.st_size < self._offset:
            raise JournalError(f"{self._path} was replaced or cut while it was followed")
        self._identity = identity
