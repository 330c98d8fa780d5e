"""Tombstones: durable records of removed anchors and journals, in the user's state folder."""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_workbench.core.history.leftovers import Tombstone
from agent_workbench.core.ids import SessionId, session_id
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically
from agent_workbench.system.regular_files import read_regular

MAX_BYTES = 1_000_000
MOST_NAMED = 50


class Tombstones:
    """A file for each session in `folder`. Blocking."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, session: SessionId) -> Tombstone | None:
        """Return the tombstone of a session, None if nothing of it was removed, or if the record is not readable."""
        try:
            data = read_regular(self._folder / session_id(session), MAX_BYTES)
            found = msgspec.json.decode(data, type=Tombstone)
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return found if found.session == session else None

    def bury(self, stone: Tombstone) -> None:
        """Add a record, durably, before what it names is removed; raise `StorageError`."""
        before = self.of(stone.session)
        if before is not None:
            removed = dict.fromkeys((*before.removed, *stone.removed))
            stone = replace(stone, removed=tuple(removed)[-MOST_NAMED:], journal=stone.journal or before.journal)
        try:
            make_directories(self._folder)
        except OSError as error:
            raise storage_error(f"{self._folder} cannot be created", error) from error
        write_atomically(self._folder / session_id(stone.session), msgspec.json.encode(stone), mode=0o600)
