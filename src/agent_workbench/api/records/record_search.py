"""Search for words in the records of all sessions of a repository."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from msgspec import Struct

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.errors import JournalError, StorageError
from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.invocation import Invocation
from agent_workbench.views.sessions.record_search import RecordMatches, search_events, subject_text


class FoundInSession(Struct, frozen=True):
    """Matches in one session; `problem` says why it could not be read (empty: it could)."""

    session: SessionSummary
    found: RecordMatches
    problem: str = ""


async def search_sessions(invocation: Invocation, asked: str) -> AsyncIterator[FoundInSession]:
    """Yield the sessions with a match or a problem, newest first.

    Events that a fork shares with its parent are searched in the parent alone.
    """
    repo, settings = await trusted_repo(invocation)
    store = await asyncio.to_thread(repo.sessions, settings)
    sessions = await store.summaries()
    names = {session.id for session in sessions}
    for session in sessions:
        copied = session.parent_seq if session.parent in names else None
        try:
            events = await store.read(session.id, whole=True)
            found = await asyncio.to_thread(search_events, events[0 if copied is None else copied + 1 :], asked)
        except (JournalError, StorageError) as error:
            yield FoundInSession(session, RecordMatches(asked), str(error))
            continue
        if found.count:
            yield FoundInSession(session, found)


async def closest_sessions(invocation: Invocation, asked: str, limit: int) -> tuple[SessionSummary, ...]:
    """Return at most `limit` sessions that are about some of the words, best first, for words that none holds."""
    from agent_workbench.bootstrap.code_search import rank_texts

    repo, settings = await trusted_repo(invocation)
    store = await asyncio.to_thread(repo.sessions, settings)
    sessions, texts = [], []
    for session in await store.summaries():
        with suppress(JournalError, StorageError):  # the search has reported it
            texts.append(await asyncio.to_thread(subject_text, await store.read(session.id, whole=True)))
            sessions.append(session)
    return tuple(sessions[number] for number in await asyncio.to_thread(rank_texts, texts, asked, limit))
