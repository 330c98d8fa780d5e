"""Fork of a recorded session: what it would continue from, and the fork itself."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.stores import system_clock
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ids import SessionId
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.version import __version__

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.events import Recorded
    from agent_workbench.core.settings import Settings
    from agent_workbench.engine.fork import ForkPoint

GONE = "git has the files of that moment no more"
ANOTHER = "another step may do; on the command line, --at says which"


async def foresee_fork(invocation: Invocation, session: str, at: int | None) -> tuple[str, ...]:
    """Return, line by line, the state that a fork of a session after event `at` (None: the last) would go on from.

    Raises what `fork_session` does.
    """
    repo, settings = await trusted_repo(invocation)
    _, point = await _point(repo, settings, session, at)
    return await _told(repo, point)


async def fork_session(invocation: Invocation, session: str, at: int | None) -> tuple[SessionId, tuple[str, ...]]:
    """Make a new session that goes on from event `at` of another one; return its name and its state line by line.

    Raises `UsageError` for an unknown session or event, `TrustError` for a session from elsewhere, `JournalError` for
    a damaged one, `WorkspaceError` if git has pruned its files.
    """
    from agent_workbench.adapters.memory import ScratchpadFolder
    from agent_workbench.engine.fork import ForkServices

    repo, settings = await trusted_repo(invocation)
    events, point = await _point(repo, settings, session, at)
    lines = await _told(repo, point)
    sessions = await asyncio.to_thread(repo.sessions, settings)
    child, journal = await asyncio.to_thread(sessions.fork)
    memory = ScratchpadFolder(repo.root, settings.memory.dir)
    forking = ForkServices(journal, repo.repository, memory, system_clock(), __version__)
    parent = await sessions.summary(await sessions.locate(session))
    await forking.fork(events, point, child, arrived=bool(parent.worker))
    return child, lines


async def _told(repo: "RepoContext", point: "ForkPoint") -> tuple[str, ...]:
    """Return the state that a fork continues from; raise `WorkspaceError` if git has pruned its files."""
    from agent_workbench.views.sessions import fork_lines

    run = point.state.run
    try:
        files = await repo.repository.diff_stat(run.workspace.base, run.tree) if run is not None else ()
    except WorkspaceError as error:
        raise WorkspaceError(f"{GONE}: {error}", advice=ANOTHER) from error
    return fork_lines(point.state, point.why, files)


async def _point(
    repo: "RepoContext", settings: "Settings", session: str, at: int | None
) -> "tuple[tuple[Recorded, ...], ForkPoint]":
    from agent_workbench.engine.fork import fork_point

    sessions = await asyncio.to_thread(repo.sessions, settings)
    parent = await sessions.locate(session)
    await sessions.find(SessionQuery(parent))  # which refuses a session from elsewhere
    events = await sessions.read(parent, whole=True)
    return events, await asyncio.to_thread(fork_point, events, at)
