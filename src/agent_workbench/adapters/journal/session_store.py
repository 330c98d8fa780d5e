"""Which journal a start of the workbench writes to: one asked for, the unfinished one, or a new one.

A journal holds approvals, and a repo can bring a forged one. So only sessions that were begun on this machine by this
user are taken up; for each a note stands in a folder outside of every repo. Any other can be replayed and no more.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.journal.fork_journal import ForkedJournal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.session_list import find_session, list_sessions, names_branch, session_folders
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.errors import JournalError, LockedError, TrustError
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.services import Ids
from agent_workbench.system.atomic_files import make_directories, storage_error, write_atomically


class Opening(Struct, frozen=True):
    """A journal that is held now, and what stands in it (nothing when it is new)."""

    session: SessionId
    writer: JournalWriter
    events: tuple[Recorded, ...] = ()
    torn_bytes: int = 0
    fresh: bool = False


class Wanted(Struct, frozen=True):
    """Request for a session: one by name, a `fresh` one, or the unfinished one (on one of `tasks`, None: on any).

    A session that stopped in one of the tasks `passing` is not the unfinished one.
    """

    name: str = ""
    fresh: bool = False
    tasks: tuple[TaskId, ...] | None = None
    passing: frozenset[TaskId] = frozenset()


class Sessions:
    """The journals in `folder`; for each that was begun here a note stands in `ours`. Calls without `async` block."""

    def __init__(self, folder: Path, ours: Path) -> None:
        self._folder = folder
        self._ours = ours

    def open(self, ids: Ids, redactor: Redactor, wanted: Wanted) -> Opening:
        """Open the journal that is wanted, a new one where none fits.

        Raises what `find` raises, `LockedError`, `JournalError`, `StorageError`.
        """
        while (directory := self.find(wanted)) is not None:
            try:
                opened = JournalWriter.open_existing(directory, redactor)
            except LockedError:
                if wanted.name:
                    raise
                continue  # another process took it up after it was found: it is not found again
            return Opening(SessionId(directory.name), opened.writer, opened.events, opened.torn_bytes)
        directory = self._folder / ids.session()
        try:
            self._note(directory)
            return Opening(SessionId(directory.name), JournalWriter.open_new(directory, redactor), fresh=True)
        except BaseException:
            self._remove(directory)
            raise

    async def abandon(self, opening: Opening) -> None:
        """Give a journal back that nothing came of: one that was new is removed."""
        await opening.writer.close()
        if opening.fresh:
            await asyncio.to_thread(self._remove, opening.writer.directory)

    def find(self, wanted: Wanted) -> Path | None:
        """Return the folder of the session that `open` would go on with, None where it would begin a new one.

        Raises `UsageError` for a name that fits none or several, `TrustError` for a session that was not begun here,
        `JournalError` for an unfinished one that is damaged.
        """
        if not wanted.name:
            return None if wanted.fresh else self._unfinished(wanted)
        return self.find_ours(wanted.name)

    def find_ours(self, name: str) -> Path:
        """Return the folder of a session that was begun here; raise `UsageError`, `TrustError`."""
        directory = find_session(self._folder, name)
        if not self._is_ours(directory):
            raise TrustError(
                f"session {directory.name} was not begun here, so its approvals do not count",
                advice=f"`agent replay {directory.name}` shows it; a new session can do its tasks",
            )
        return directory

    def summaries(self) -> tuple[SessionSummary, ...]:
        """Return all sessions, newest first; raise `StorageError`."""
        return tuple(replace(each, ours=self._is_ours(each.directory)) for each in list_sessions(self._folder))

    def fork(self, ids: Ids, redactor: Redactor) -> tuple[SessionId, ForkedJournal]:
        """Return a new session's name and its journal, of which nothing is there yet."""
        directory = self._folder / ids.session()
        return SessionId(directory.name), ForkedJournal(directory, redactor, self._note)

    def has_begun(self, session: SessionId, branch: str) -> bool:
        """Return whether the journal of a session (no name: any here) says that it began a task on a branch.

        A session is looked for in the folder it was begun in, as that may be another checkout's.
        """
        if not session:
            return any(names_branch(folder, branch) for folder in session_folders(self._folder))
        try:
            directory = Path(os.fsdecode((self._ours / session).read_bytes()))
        except OSError:
            directory = self._folder / session
        return names_branch(directory, branch)

    def was_killed_when_done(self, tasks: tuple[TaskId, ...]) -> bool:
        """Return whether the newest session begun here on one of these tasks was killed when it had the task done.

        What the plan says of the task since is not looked at.
        """
        for summary in list_sessions(self._folder):
            if summary.tasks and summary.tasks[-1] in tasks and self._is_ours(summary.directory):
                ended = summary.status is TaskStatus.DONE and not summary.left
                return ended and not summary.holder and not summary.problem
        return False

    def unfinished_tasks(self) -> Mapping[TaskId, str]:
        """Return the tasks that stopped in a session begun here, with who has that session open (empty: nobody)."""
        found: dict[TaskId, str] = {}
        for summary in list_sessions(self._folder):
            unfinished = summary.status is TaskStatus.IN_PROGRESS and not summary.problem
            if unfinished and self._is_ours(summary.directory):
                found[summary.tasks[-1]] = summary.holder or found.get(summary.tasks[-1], "")
        return found

    def _unfinished(self, wanted: Wanted) -> Path | None:
        """Return the newest one that is unfinished; raise when it is damaged, unless a newer one was begun since."""
        newer = False
        for summary in list_sessions(self._folder):
            task = summary.tasks[-1] if summary.tasks else None
            fits = wanted.tasks is None or task is None or task in wanted.tasks
            if not fits or summary.holder or not self._is_ours(summary.directory):
                continue
            if task in wanted.passing:
                newer = True
                continue
            if summary.status is TaskStatus.IN_PROGRESS and not summary.problem:
                return summary.directory
            if not newer and _is_damaged(summary):
                raise JournalError(
                    f"session {summary.id} may be unfinished, and its journal is damaged: {summary.problem}",
                    advice=f"`agent sessions verify {summary.id}` tells what; `--new` begins another session",
                )
            newer = True
        return None

    def _note(self, directory: Path) -> None:
        try:
            make_directories(self._ours)
            write_atomically(self._ours / directory.name, os.fsencode(directory.resolve()))
        except OSError as error:
            raise storage_error(f"{self._ours} could not be written", error) from error

    def _remove(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            (self._ours / directory.name).unlink(missing_ok=True)

    def _is_ours(self, directory: Path) -> bool:
        try:
            return (self._ours / directory.name).read_bytes() == os.fsencode(directory.resolve())
        except OSError:
            return False


def _is_damaged(summary: SessionSummary) -> bool:
    """Return whether a session that cannot be gone on with may be unfinished (no status: its start is not legible)."""
    return bool(summary.problem and summary.events) and summary.status in {TaskStatus.IN_PROGRESS, None}
