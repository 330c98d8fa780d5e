"""Wiring of the inbox: this machine's folder of decisions, or that and the database that machines share."""

from typing import TYPE_CHECKING

from agent_workbench.bootstrap.stores import local_inbox

if TYPE_CHECKING:  # loaded where a database is set
    from agent_workbench.adapters.database.inbox import DatabaseInbox
    from agent_workbench.bootstrap.shared_resources import SharingRepo
    from agent_workbench.core.ids import SessionId
    from agent_workbench.core.ports.stores import Inbox, SessionStore
    from agent_workbench.core.settings import Settings


def repo_decisions(repo: "SharingRepo", settings: "Settings", sessions: "SessionStore") -> "Inbox":
    """Return the decisions made outside the processes that hold the `sessions`; raise `ConfigError`."""
    if not settings.database.active:
        return local_inbox()
    from agent_workbench.adapters.database.inbox import DatabaseInbox
    from agent_workbench.bootstrap.database import repository_key, shared_database, shared_signatures

    async def elsewhere(session: "SessionId") -> bool:
        return bool((await sessions.summary(session)).worker)

    def made() -> "DatabaseInbox":
        database, signatures = shared_database(repo, settings.database), shared_signatures(repo, settings.database)
        return DatabaseInbox(database, signatures, local_inbox(), elsewhere, repository=lambda: repository_key(repo))

    return repo.shared.inbox((settings.database, repo.root), made)
