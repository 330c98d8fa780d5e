"""Words looked up in the records of all sessions of a repository."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from msgspec import Struct

from agent_workbench.api.records import session_summaries
from agent_workbench.core.errors import JournalError, StorageError
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.invocation import Place
from agent_workbench.views.sessions.record_search import RecordMatches, search


class FoundInSession(Struct, frozen=True):
    """What one session holds; `problem` says why it could not be read, empty when it could."""

    session: SessionSummary
    found: RecordMatches
    problem: str = ""


async def search_sessions(place: Place, asked: str) -> AsyncIterator[FoundInSession]:
    """Yield what the sessions hold of the words, newest session first; only those with a match or a problem.

    What a fork has from a session that is there too is looked up in that one alone.
    """
    sessions = await session_summaries(place)
    names = {session.id for session in sessions}
    for session in sessions:
        copied = session.parent_seq if session.parent in names else None
        try:
            found = await asyncio.to_thread(_search, session.directory, asked, copied)
        except (JournalError, StorageError) as error:
            yield FoundInSession(session, RecordMatches(asked), str(error))
            continue
        if found.count:
            yield FoundInSession(session, found)


def _search(directory: Path, asked: str, copied: int | None) -> RecordMatches:
    """Look the words up in the events of a session, behind event `copied`."""
    from agent_workbench.adapters.journal.reader import read_journal

    first = 0 if copied is None else copied + 1
    return search(read_journal(directory, whole=True).events[first:], asked)
