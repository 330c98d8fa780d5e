"""Sessions of a repository as folders with journals under a kernel lock: new, forked, and removed.

A journal holds approvals, and a repository can bring a forged one. So only sessions begun on this machine by this user
are opened: a registry outside of every repository names them. Any other session can be read and nothing more.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_workbench.adapters.journal.audit_source import JournalSource
from agent_workbench.adapters.journal.blobs import JOURNAL, LOCK
from agent_workbench.adapters.journal.reader import JournalFollower, read_journal, verify_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.session_list import (
    find_session,
    names_branch,
    parent_of,
    session_folders,
    summarize_session,
)
from agent_workbench.adapters.journal.writer import AppendOnlyFile, JournalWriter, LineComposer
from agent_workbench.core.database_report import Backlog
from agent_workbench.core.errors import JournalError, LockedError, StorageError, TrustError, UsageError
from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.history.journal_proof import VerifyReport
from agent_workbench.core.history.leftovers import Leftover, LeftoverKind, Tombstone, is_over
from agent_workbench.core.history.summaries import SessionQuery, SessionSummary, unfinished_session
from agent_workbench.core.ids import SESSION_ID, SessionId, session_id
from agent_workbench.core.ports.machine import Ids
from agent_workbench.core.ports.stores import HeldSession
from agent_workbench.system.atomic_files import make_directories, storage_error, sync_directory, write_atomically
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.folder_trees import disk_usage, read_regular, remove_tree
from agent_workbench.system.locks import FileLock, describe_holder, lock_holder

MAX_BYTES = 1_000_000
MOST_NAMED = 50

UNFINISHED = ".fork-"
"""Prefix of the hidden folder; no session's name begins with it."""

REMOVED = ".removed-"


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


class LocalSessionStore:
    """`core.ports.stores.SessionStore` over the journals in `folder`; `registry` names the sessions begun here.

    `redactor` is called for a session that is written, not for one that is read; `on_begin` before a session is begun.
    """

    def __init__(
        self,
        folder: Path,
        registry: Path,
        ids: Ids,
        redactor: Callable[[], Redactor],
        tombstones: Tombstones | None = None,
        on_begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._tombstones, self._on_begin = tombstones, on_begin
        self._folder = folder
        self._registry = registry
        self._ids = ids
        self._redactor = redactor

    async def summaries(self) -> tuple[SessionSummary, ...]:
        """Return all sessions, newest first."""
        return await asyncio.to_thread(self._summaries)

    async def summary(self, session: SessionId) -> SessionSummary:
        """Return one session as `summaries` does."""
        return await asyncio.to_thread(self._summary, self._directory(session))

    async def locate(self, name: str = "") -> SessionId:
        """Return the session whose first or last letters are `name`; the newest for an empty name."""
        return SessionId((await asyncio.to_thread(find_session, self._folder, name)).name)

    async def find(self, query: SessionQuery) -> SessionId | None:
        """Return the session that `open` would resume, None if it would begin a new one."""
        return await asyncio.to_thread(self._find, query)

    async def open(self, query: SessionQuery) -> HeldSession:
        """Resume the session that fits the query, or begin a new one."""
        opening = asyncio.ensure_future(asyncio.to_thread(self._open, query))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.wait({opening})
            if opening.exception() is None:
                await self.discard(opening.result())
            raise

    async def discard(self, opened: HeldSession) -> None:
        """Close the journal of a session in which nothing was done; one that was new is removed."""
        await opened.journal.close()
        if opened.fresh:
            await asyncio.to_thread(self._remove, self._directory(opened.id))

    def fork(self) -> tuple[SessionId, ForkedJournal]:
        """Return the id and the journal of a new session; nothing of it exists yet."""
        directory = self._folder / self._ids.session()
        return SessionId(directory.name), ForkedJournal(directory, self._redactor(), self._register)

    async def read(self, session: SessionId, *, whole: bool = False) -> tuple[Recorded, ...]:
        """Return the events recorded so far, each proved."""
        directory = self._directory(session)
        return (await asyncio.to_thread(lambda: read_journal(directory, whole=whole))).events

    async def verify(self, session: SessionId) -> VerifyReport:
        """Return every line that does not fit."""
        return await asyncio.to_thread(verify_journal, self._directory(session))

    async def origins(self) -> Mapping[SessionId, tuple[SessionId, int] | None]:
        """Return, for each session, its parent and the last event they share; None if it is no fork."""
        return await asyncio.to_thread(
            lambda: {SessionId(each.name): parent_of(each) for each in session_folders(self._folder)}
        )

    def backlog(self) -> Backlog:
        """Return an empty backlog: nobody else reads these sessions."""
        return Backlog()

    def follow(self, session: SessionId, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        """Yield the events after `after_seq`, then each new one until the caller stops."""
        return JournalFollower(self._directory(session)).events(after_seq)

    def began_on_branch(self, session: SessionId, branch: str) -> bool:
        """Return True if the journal of a session (no name: any here) says that it began a task on a branch. Blocks.

        A session is looked for in the folder it was begun in, which may be another checkout's. One whose journal the
        user removed may have begun any task.
        """
        if not session:
            return any(names_branch(folder, branch) for folder in session_folders(self._folder))
        stone = self._tombstones.of(session) if self._tombstones is not None else None
        if stone is not None and stone.journal:
            return True
        try:
            directory = Path(os.fsdecode((self._registry / session).read_bytes()))
        except OSError:
            directory = self._folder / session
        return names_branch(directory, branch)

    def _summaries(self) -> tuple[SessionSummary, ...]:
        return tuple(map(self._summary, session_folders(self._folder)))

    def _summary(self, directory: Path) -> SessionSummary:
        if not directory.is_dir():
            advice = "`agent sessions list` shows what there is"
            raise UsageError(f"there is no session {directory.name}", advice=advice)
        return replace(summarize_session(directory), ours=self._is_own(directory))

    def _find(self, query: SessionQuery) -> SessionId | None:
        if not query.name:
            found = None if query.fresh else unfinished_session(self._summaries(), query)
            return found.id if found is not None else None
        directory = find_session(self._folder, query.name)
        if not self._is_own(directory):
            raise TrustError(
                f"session {directory.name} was not begun here, so its approvals do not count",
                advice=f"`agent replay {directory.name}` shows it; a new session can do its tasks",
            )
        return SessionId(directory.name)

    def _open(self, query: SessionQuery) -> HeldSession:
        redactor = self._redactor()
        while (session := self._find(query)) is not None:
            try:
                resumed = JournalWriter.open_existing(self._directory(session), redactor)
            except LockedError:
                if query.name:
                    raise
                continue  # another process opened it meanwhile, so the next look does not find it
            return HeldSession(session, resumed.writer, resumed.events, resumed.torn_bytes)
        directory = self._folder / (query.new_id or self._ids.session())
        if directory.exists():
            raise JournalError(f"session {directory.name} exists already", advice="resume it, or begin another one")
        try:
            self._register(directory)
            writer = JournalWriter.open_new(directory, redactor)
        except BaseException:
            self._remove(directory)
            raise
        return HeldSession(SessionId(directory.name), writer, fresh=True)

    def audit_source(self) -> JournalSource:
        """Return the journals as the source of an audit index."""
        return JournalSource(self._folder, self._is_own)

    def _directory(self, session: SessionId) -> Path:
        """Return a session's folder; raise `UsageError` for a name that is no session's."""
        return self._folder / session_id(session)

    def _register(self, directory: Path) -> None:
        """Note durably that the session in `directory` is begun here."""
        self._on_begin()
        register(self._registry, directory)

    def _is_own(self, directory: Path) -> bool:
        return is_registered(self._registry, directory)

    def _remove(self, directory: Path) -> None:
        check_record(directory)
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            (self._registry / directory.name).unlink(missing_ok=True)


def register(registry: Path, directory: Path) -> None:
    """Note durably that the session in `directory` counts as begun here; raise `StorageError`."""
    try:
        make_directories(registry)
        write_atomically(registry / directory.name, os.fsencode(directory.resolve()))
    except OSError as error:
        raise storage_error(f"{registry} could not be written", error) from error


def is_registered(registry: Path, directory: Path) -> bool:
    """Return True if the session in `directory` counts as begun here."""
    try:
        return (registry / directory.name).read_bytes() == os.fsencode(directory.resolve())
    except OSError:
        return False


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
