"""Removal of whole sessions: their folders, under the lock of their journals."""

import os
from collections.abc import Sequence
from pathlib import Path

from agent_workbench.adapters.journal.blobs import JOURNAL, LOCK
from agent_workbench.core.errors import StorageError
from agent_workbench.core.history.leftovers import Leftover, LeftoverKind, is_over
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SESSION_ID, SessionId, session_id
from agent_workbench.system.atomic_files import storage_error
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import disk_usage, remove_tree
from agent_workbench.system.locks import FileLock, describe_holder

REMOVED = ".removed-"


class SessionRemoval:
    """Sessions whose journals are in `folder`; `registry` names those that were begun on this machine. Blocking."""

    def __init__(self, folder: Path, registry: Path) -> None:
        self._folder, self._registry = folder, registry

    def find(self, summaries: Sequence[SessionSummary], before: str) -> tuple[Leftover, ...]:
        """Return the sessions; those that are over and older than `before` (a UTC time) are safe to remove."""
        return tuple(self._described(each, before) for each in summaries)

    def _described(self, summary: SessionSummary, before: str) -> Leftover:
        old = bool(summary.last) and summary.last < before
        told = ", ".join(filter(None, (", ".join(summary.tasks), summary.state, f"last used {summary.last[:10]}")))
        return Leftover(
            LeftoverKind.SESSION,
            summary.id,
            told,
            disk_usage(self._folder / summary.id),
            safe=old and is_over(summary),
            kept=f"it is open: {summary.holder}" if summary.holder else "",
            seen=self._stamp(summary.id),
            anchors=(summary.id,),
        )

    def _stamp(self, session: str) -> str:
        """Return the size and time of a journal, which every event changes."""
        try:
            status = os.lstat(self._folder / session / JOURNAL)
        except OSError:
            return ""
        return f"{status.st_size} {status.st_mtime_ns}"

    def remove(self, leftover: Leftover) -> None:
        """Remove a session as it was listed; raise `LockedError` if it is open, `StorageError` if it changed."""
        directory = self._folder / session_id(leftover.name)
        if directory.is_symlink() or not directory.is_dir():
            raise StorageError(f"{directory} is no folder any more", advice="`agent clean` lists what there is now")
        # The whole folder goes at once, so that no half of a session is left to be read.
        aside = self._folder / f"{REMOVED}{directory.name}"
        with FileLock(directory / LOCK, f"agent clean, {describe_holder()}"):
            if self._stamp(directory.name) != leftover.seen:
                raise StorageError(f"session {leftover.name} changed since it was listed", advice="list it again")
            try:
                remove_tree(str(aside))
                directory.rename(aside)
            except OSError as error:
                raise storage_error(f"{directory} cannot be removed", error) from error
        self._finish(aside)

    def _finish(self, aside: Path) -> None:
        check_record(aside)
        try:
            remove_tree(str(aside))
            (self._registry / aside.name.removeprefix(REMOVED)).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(f"{aside} cannot be removed", error) from error

    def finish_removals(self) -> None:
        """Remove what a crash left of earlier removals."""
        if not self._folder.is_dir():
            return
        for each in self._folder.iterdir():
            if each.name.startswith(REMOVED) and SESSION_ID.fullmatch(each.name.removeprefix(REMOVED)):
                self._finish(each)

    def elsewhere(self, session: SessionId) -> str:
        """Return the folder of a session that was begun in another checkout, empty if there is none."""
        try:
            place = Path(os.fsdecode((self._registry / session_id(session)).read_bytes()))
        except OSError:
            return ""
        return str(place) if place.is_dir() and place != (self._folder / session).resolve() else ""
