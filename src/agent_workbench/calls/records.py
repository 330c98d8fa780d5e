"""Calls that look at past sessions."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.calls.sites import trusted_site
from agent_workbench.core.place import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.adapters.journal.reader import VerifyReport
    from agent_workbench.adapters.journal.sessions import SessionSummary
    from agent_workbench.core.events import Recorded
    from agent_workbench.engine.replay import ReplaySession


async def session_folder(place: Place) -> Path:
    """Return the folder of the session that `place` names, the newest when it names none; raise `UsageError`."""
    from agent_workbench.adapters.journal.sessions import find_session

    site, settings = await trusted_site(place)
    return await asyncio.to_thread(lambda: find_session(site.sessions_dir(settings), place.session))


async def recorded_events(place: Place) -> "tuple[Recorded, ...]":
    """Return what stands in a session's journal; raise `JournalError` where it does not prove itself."""
    from agent_workbench.adapters.journal.reader import read_journal

    return (await asyncio.to_thread(read_journal, await session_folder(place))).events


async def replay_session(place: Place) -> "ReplaySession":
    """Return a past session to be seen again."""
    from agent_workbench.engine.replay import ReplaySession

    return ReplaySession(await recorded_events(place))


async def verify_session(place: Place) -> "VerifyReport":
    """Return whether a session's journal proves itself, with every line that does not fit."""
    from agent_workbench.adapters.journal.reader import verify_journal

    return await asyncio.to_thread(verify_journal, await session_folder(place))


async def session_summaries(place: Place) -> "tuple[SessionSummary, ...]":
    """Return the repo's sessions, newest first."""
    from agent_workbench.adapters.journal.sessions import list_sessions

    site, settings = await trusted_site(place)
    return await asyncio.to_thread(lambda: list_sessions(site.sessions_dir(settings)))
