"""Calls that make a new session of an old one."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench import __version__
from agent_workbench.api.repo_context import trusted_site
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.history.session_choice import SessionQuery
from agent_workbench.core.ids import SessionId
from agent_workbench.core.invocation import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.bootstrap import Site
    from agent_workbench.core.events import Recorded
    from agent_workbench.core.settings import Settings
    from agent_workbench.engine.replay.fork import ForkPoint

GONE = "git has the files of that moment no more"
ANOTHER = "another step may do; on the command line, --at says which"


async def foresee_fork(place: Place, at: int | None) -> tuple[str, ...]:
    """Return line by line what a fork of the session of `place` after event `at` (None: the last) would go on from.

    Raises what `fork_session` does.
    """
    site, settings = await trusted_site(place)
    _, point = await _point(site, settings, at)
    return await _told(site, point)


async def fork_session(place: Place, at: int | None) -> tuple[SessionId, tuple[str, ...]]:
    """Make a new session that goes on from event `at` of the session of `place`; return its name and what it is.

    Raises `UsageError` for a session or an event that there is not, `TrustError` for a session that was not begun
    here, `JournalError` where it does not prove itself, `WorkspaceError` where git has its files no more.
    """
    from agent_workbench.adapters.journal.clock import SystemClock
    from agent_workbench.adapters.memory.scratchpads import ScratchpadFolder
    from agent_workbench.engine.replay.fork import Forking

    site, settings = await trusted_site(place)
    events, point = await _point(site, settings, at)
    lines = await _told(site, point)
    sessions = await asyncio.to_thread(site.sessions, settings)
    child, journal = await asyncio.to_thread(sessions.fork)
    memory = ScratchpadFolder(site.root, settings.memory.dir)
    forking = Forking(journal, site.repository, memory, SystemClock(), __version__)
    await forking.fork(events, point, child)
    return child, lines


async def _told(site: "Site", point: "ForkPoint") -> tuple[str, ...]:
    """Return what a fork goes on from; raise `WorkspaceError` where git has its files no more."""
    from agent_workbench.views.sessions.fork import fork_lines

    run = point.state.run
    try:
        files = await site.repository.diff_stat(run.workspace.base, run.tree) if run is not None else ()
    except WorkspaceError as error:
        raise WorkspaceError(f"{GONE}: {error}", advice=ANOTHER) from error
    return fork_lines(point.state, point.why, files)


async def _point(site: "Site", settings: "Settings", at: int | None) -> "tuple[tuple[Recorded, ...], ForkPoint]":
    from agent_workbench.engine.replay.fork import fork_point

    sessions = await asyncio.to_thread(site.sessions, settings)
    parent = await sessions.locate(site.place.session)
    await sessions.find(SessionQuery(parent))  # which refuses a session from elsewhere
    events = await sessions.read(parent, whole=True)
    return events, await asyncio.to_thread(fork_point, events, at)
