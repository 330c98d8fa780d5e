"""Answers of the audit over all sessions of a repository, and the copy of its records that machines share."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import StorageError, WorkbenchError, error_text
from agent_workbench.core.events import SessionStarted
from agent_workbench.core.history.audit_records import AuditRecord
from agent_workbench.core.history.audit_trail import AuditTrail, possible_records
from agent_workbench.core.ids import SessionId
from agent_workbench.core.ports.audit_index import AuditCopies, AuditSource
from agent_workbench.core.ports.stores import SessionStore
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import counted_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.history.audit_records import AnyPage, AnyQuery, AuditDecision, AuditEntry
    from agent_workbench.core.ports.audit_index import AuditIndex
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex


MOST_PROVED = 200
"""Most sessions whose journals are read to prove one answer."""
NOT_THERE = "the session's signed journal has no such event, or another one"
TOO_MANY = f"more than {MOST_PROVED} sessions are in the answer; ask for fewer"


async def share_audit(repo: "RepoContext") -> str:
    """Copy what this machine's audit has to the database, if there is one; return a sentence about what failed."""
    settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
    if not settings.database.active:
        return ""
    try:
        source, index = await asyncio.to_thread(_local, repo, settings)
        await _copy(repo, settings, source, index)
    except WorkbenchError as error:
        return f"the audit was not copied to the database: {error_text(error)}"
    return ""


async def audit_answer(invocation: Invocation, query: "AnyQuery") -> "AnyPage":
    """Return the page that answers a query, of all machines, or of this one where there is no database or it is down.

    Raises `UsageError` for a query outside of the bounds.
    """
    from agent_workbench.bootstrap.stores import system_clock
    from agent_workbench.core.ports.audit_index import ask

    repo, settings = await trusted_repo(invocation)
    source, index = await asyncio.to_thread(_local, repo, settings)
    now = system_clock().now()
    own = await ask(index, query, now)
    if not settings.database.active:
        return own
    try:
        page = await ask(await _copy(repo, settings, source, index), query, now)
    except StorageError as error:
        why = f"the answer is of this machine alone: {error}"
        return replace(own, notes=(*own.notes, why))
    finally:
        await repo.shared.close()
    notes = (*own.notes, *page.notes, *_missing(own, page))
    return replace(page, problems=(*own.problems, *page.problems), notes=notes)


def _missing(own: "AnyPage", page: "AnyPage") -> "Iterator[str]":
    """Yield a sentence if the shared answer lacks records of this machine; a page that is cut tells nothing."""
    here, there = _rows(own), _rows(page)
    gone = [each for each in here if not each.unproved and each not in there]
    if gone and len(there) == page.total:
        verb = "is" if len(gone) == 1 else "are"
        yield f"{counted_text(len(gone), 'record')} of this machine {verb} missing in the database's answer"


def _rows(page: "AnyPage") -> "Sequence[AuditEntry | AuditDecision]":
    """Return the records of a page; sums are none."""
    from agent_workbench.core.history.audit_records import AuditPage, DecisionPage

    match page:
        case AuditPage():
            return page.entries
        case DecisionPage():
            return page.decisions
        case _:
            return ()


async def _copy(
    repo: "RepoContext", settings: "Settings", source: "AuditSource", index: "SqliteAuditIndex"
) -> "AuditIndex":
    """Copy what is new on this machine to the index that machines share, and return it."""
    from agent_workbench.bootstrap.database import shared_audit

    sessions = await asyncio.to_thread(repo.sessions, settings)
    shared = await shared_audit(repo, settings, JournalProofs(sessions))
    await copy_records(source, shared, await index.heads())
    return shared


def _local(repo: "RepoContext", settings: "Settings") -> "tuple[AuditSource, SqliteAuditIndex]":
    from agent_workbench.bootstrap.stores import audit_index

    source = repo.local_sessions(settings).audit_source()
    return source, audit_index(repo.root, source)


class JournalProofs:
    """Implements `core.ports.audit_index.AuditProofs` with `sessions`, which give proved events or none."""

    def __init__(self, sessions: SessionStore) -> None:
        self._sessions = sessions
        self._known: dict[SessionId, frozenset[AuditRecord] | str] = {}

    async def unproved(self, records: Sequence[AuditRecord]) -> Sequence[str]:
        """Return, for each record, why no signed journal is known to have exactly it."""
        for session in dict.fromkeys(each.session for each in records):
            if session not in self._known and len(self._known) < MOST_PROVED:
                self._known[session] = await self._records(session)
        return tuple(map(self._unproved, records))

    def _unproved(self, record: AuditRecord) -> str:
        known = self._known.get(record.session, TOO_MANY)
        if isinstance(known, str):
            return known
        return "" if replace(record, unproved="") in known else NOT_THERE

    async def _records(self, session: SessionId) -> frozenset[AuditRecord] | str:
        """Return the records of a proved journal, or why there is none."""
        try:
            summary = await self._sessions.summary(session)
            if not (summary.ours or summary.worker):
                return "its session was not begun on this machine"
            events = await self._sessions.read(session)
        except WorkbenchError as error:
            return f"its journal is not proved: {error}"
        found: list[AuditRecord] = []
        trail, copied = AuditTrail(), 0
        for recorded in events:
            if isinstance(recorded.event, SessionStarted) and recorded.event.parent_seq is not None:
                copied = recorded.event.parent_seq + 1
            found += trail.add(recorded)
        # Its records may have been copied before its newest events.
        return possible_records(found, copied)


async def copy_records(source: AuditSource, shared: AuditCopies, heads: Mapping[SessionId, int]) -> None:
    """Copy the records of sessions whose journal has more events (`heads`) than were copied; raise `StorageError`."""
    copied = await shared.copied()
    for session, seq in heads.items():
        if copied.get(session, -1) < seq:
            journal = await asyncio.to_thread(source.read, session, None)
            if journal.mark.seq >= 0:
                await shared.replace(session, journal)
