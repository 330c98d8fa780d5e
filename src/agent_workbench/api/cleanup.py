"""Cleanup: leftovers of past work in a repository, listed and removed."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.bootstrap.stores import session_removal, tombstones
from agent_workbench.core.errors import LockedError, StorageError, WorkbenchError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.history.leftovers import Leftover, SessionFacts
    from agent_workbench.core.settings import Settings

OLD_DAYS = 30


async def find_leftovers(invocation: Invocation, old_days: int = OLD_DAYS) -> "tuple[Leftover, ...]":
    """Return branches with worktrees, checkpoints and sessions; those over `old_days` old are safe to remove."""
    repo, settings = await trusted_repo(invocation)
    facts = await _facts(repo, settings, old_days)
    in_git = await repo.repository.leftovers(facts, settings.workspace.link)
    removal = await asyncio.to_thread(lambda: session_removal(repo.sessions_dir(settings)))
    await asyncio.to_thread(removal.finish_removals)
    here = await repo.local_sessions(settings).summaries()
    sessions = await asyncio.to_thread(removal.find, here, facts.before)
    return (*in_git, *sessions)


async def remove_leftovers(
    invocation: Invocation, chosen: "Sequence[Leftover]", tell: "Callable[[Leftover, WorkbenchError | None], None]"
) -> bool:
    """Remove leftovers as they were listed, and pass each with its error to `tell`; return True if all are gone.

    A tombstone of each session whose anchors are removed is durable before anything is.
    """
    from agent_workbench.core.history.leftovers import LeftoverKind

    repo, settings = await trusted_repo(invocation)
    removal = await asyncio.to_thread(lambda: session_removal(repo.sessions_dir(settings)))
    whole = True
    # Sessions last: while the journal is there it says what may still be needed of the others.
    for each in sorted(chosen, key=lambda it: it.kind is LeftoverKind.SESSION):
        error = None
        try:
            await asyncio.to_thread(_bury, repo, each)
            if each.kind is LeftoverKind.SESSION:
                await asyncio.to_thread(removal.remove, each)
            else:
                facts = await _facts(repo, settings, OLD_DAYS)
                await repo.repository.remove_leftover(each, facts, settings.workspace.link)
                await _remove_shared(repo, settings, each)
        except WorkbenchError as caught:
            error, whole = caught, False
        tell(each, error)
    return whole


async def _remove_shared(repo: "RepoContext", settings: "Settings", leftover: "Leftover") -> None:
    """Remove the same from the git remote that machines share, unless another machine has the session now."""
    if not settings.database.active or not settings.database.remote or leftover.session is None or not leftover.refs:
        return
    from agent_workbench.bootstrap.database import session_refs

    try:
        await session_refs(repo, settings).remove(leftover.session, leftover.refs)
    except LockedError:
        return
    except WorkbenchError as error:
        raise StorageError(
            f"{leftover.name} was removed here and is still at the git remote: {error}", advice=error.advice
        ) from error


async def _facts(repo: "RepoContext", settings: "Settings", old_days: int) -> "SessionFacts":
    from datetime import UTC, datetime, timedelta

    from agent_workbench.core.history.leftovers import SessionFacts

    sessions, removal = await asyncio.to_thread(
        lambda: (repo.sessions(settings), session_removal(repo.sessions_dir(settings)))
    )
    before = (datetime.now(UTC) - timedelta(days=old_days)).isoformat()
    summaries = {each.id: each for each in await sessions.summaries()}
    return SessionFacts(summaries, removal.elsewhere, before)


def _bury(repo: "RepoContext", leftover: "Leftover") -> None:
    from datetime import UTC, datetime

    from agent_workbench.core.history.leftovers import LeftoverKind, Tombstone

    now = datetime.now(UTC).isoformat(timespec="seconds")
    for session in leftover.anchors:
        tombstones().bury(Tombstone(session, (leftover.name,), now, leftover.kind is LeftoverKind.SESSION))
