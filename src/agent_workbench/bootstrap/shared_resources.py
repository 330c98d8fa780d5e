"""Resources that the sessions of a process share: a server for each model file, and code searches."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # loaded when the first session needs them
    from agent_workbench.adapters.database.connection import Database
    from agent_workbench.adapters.database.inbox import DatabaseInbox
    from agent_workbench.adapters.database.sessions.shared_store import SharedSessionStore
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.adapters.llama_cpp.server.shared_models import SharedModels
    from agent_workbench.adapters.retrieval.shared_retrievers import SharedRetriever, SharedRetrievers
    from agent_workbench.adapters.signatures.ssh_signatures import SshSignatures
    from agent_workbench.core.invocation import Invocation
    from agent_workbench.core.settings import Settings


class SharingRepo(Protocol):
    """Part of a repository's context that shared state is wired with."""

    invocation: "Invocation"
    root: Path
    repository: "Repository"
    shared: "SharedResources"


class SharedResources:
    """Servers and searches that live as long as a session uses them.

    Everything else is the session's own: journal, workspace, ports. Sessions exclude each other by file locks, as those
    of different processes do: a journal has one writer, a task one workspace, plan and notes one change at a time.
    """

    def __init__(self) -> None:
        self._databases: dict[str, Database] = {}
        self._signatures: dict[object, SshSignatures] = {}
        self._sessions: dict[object, SharedSessionStore] = {}
        self._inboxes: dict[object, DatabaseInbox] = {}

    def database(self, address: str) -> "Database":
        """Return the database at an address, the same one each time."""
        from agent_workbench.adapters.database.connection import Database

        return self._databases.setdefault(address, Database(address))

    def signatures(self, key: object, make: "Callable[[], SshSignatures]") -> "SshSignatures":
        """Return the signatures for these settings (`key`), the same each time: they remember what they judged."""
        if key not in self._signatures:
            self._signatures[key] = make()
        return self._signatures[key]

    def sessions(self, key: object, make: "Callable[[], SharedSessionStore]") -> "SharedSessionStore":
        """Return the sessions of all machines for these settings (`key`), the same each time."""
        if key not in self._sessions:
            self._sessions[key] = make()
        return self._sessions[key]

    def inbox(self, key: object, make: "Callable[[], DatabaseInbox]") -> "DatabaseInbox":
        """Return the inbox in a database (`key`), the same each time: it listens with one connection."""
        if key not in self._inboxes:
            self._inboxes[key] = make()
        return self._inboxes[key]

    async def close(self) -> None:
        """End what copies in the background, and close the connections to databases; a later use opens them again."""
        for sessions in self._sessions.values():
            await sessions.close()
        for inbox in self._inboxes.values():
            await inbox.close()
        for database in self._databases.values():
            await database.close()

    @cached_property
    def models(self) -> "SharedModels":
        """Models with an embedded server, one for each model file."""
        from agent_workbench.adapters.llama_cpp.server.shared_models import SharedModels

        return SharedModels()

    def retriever(self, settings: "Settings", environ: Mapping[str, str]) -> "SharedRetriever":
        """Return the code search for these settings, shared by the sessions that have equal ones."""
        from agent_workbench.bootstrap.code_search import code_retriever
        from agent_workbench.system.user_dirs import cache_dir

        cache = cache_dir()
        key = settings.searched, settings.model.server, cache
        return self._retrievers.take(key, lambda: code_retriever(settings, environ, cache))

    @cached_property
    def _retrievers(self) -> "SharedRetrievers":
        from agent_workbench.adapters.retrieval.shared_retrievers import SharedRetrievers

        return SharedRetrievers()
