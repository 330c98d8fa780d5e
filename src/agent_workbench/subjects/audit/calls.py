"""Answers of the audit over all sessions of a repository: ends of tasks, decisions and costs."""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import StorageError, WorkbenchError, error_text
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import counted_text

if TYPE_CHECKING:  # loaded when a question is asked
    from collections.abc import Iterator, Sequence

    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.history.audit_records import AnyPage, AnyQuery, AuditDecision, AuditEntry
    from agent_workbench.core.ports.audit_index import AuditIndex, AuditSource
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.audit.sqlite_adapter import SqliteAuditIndex


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
    from agent_workbench.subjects.audit.sharing_calls import JournalProofs, copy_records

    sessions = await asyncio.to_thread(repo.sessions, settings)
    shared = await shared_audit(repo, settings, JournalProofs(sessions))
    await copy_records(source, shared, await index.heads())
    return shared


def _local(repo: "RepoContext", settings: "Settings") -> "tuple[AuditSource, SqliteAuditIndex]":
    from agent_workbench.bootstrap.stores import audit_index

    source = repo.local_sessions(settings).audit_source()
    return source, audit_index(repo.root, source)
