"""Machines that share a database: each with a state folder and a clone of its own, and a signature of its own."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agent_workbench.adapters.database.connection import Database
from agent_workbench.adapters.database.copy_tools import CopyStates, CopyTools, Mirror
from agent_workbench.adapters.database.journal_rows import JournalRows, Leases
from agent_workbench.adapters.database.shared_store import SharedSessionStore
from agent_workbench.adapters.journal.journal_copies import JournalFolder
from agent_workbench.adapters.journal.session_store import LocalSessionStore
from agent_workbench.core.ports.machine import Clock, Ids
from agent_workbench.core.ports.shared_state import SessionRefs, Signatures
from agent_workbench.core.signed import WORKER_PURPOSES
from tests.adapters.journal.journals import NO_SECRETS
from tests.contracts.clocks import SetClock
from tests.fakes.signatures import FakeSignatures

NAMES = ("one", "two", "three")


class Machine:
    """One machine: a process after another on its folders."""

    def __init__(
        self,
        folder: Path,
        url: str,
        repository: str,
        ids: Ids,
        *,
        clock: Clock | None = None,
        signatures: Signatures | None = None,
        refs: SessionRefs | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.folder = folder
        self.name = folder.name
        self.database = Database(url)
        self.repository = repository
        self.ids = ids
        self.clock = clock or SetClock()
        self.now = now
        self.signatures = signatures or FakeSignatures(self.name, dict.fromkeys(NAMES, WORKER_PURPOSES))
        self.refs = refs
        self.copies = JournalFolder(folder / "repo", folder / "registry")
        self.states = CopyStates(folder / "copied")
        self.leases = Leases(self.database, repository, self.name, f"a process of {self.name}", now)
        self.rows = JournalRows(self.database, repository, self.leases)
        self.stores: list[SharedSessionStore] = []

    def store(self) -> SharedSessionStore:
        """Return the store as a new process has it."""
        none = self.folder / "none"
        local = LocalSessionStore(self.folder / "repo", self.folder / "registry", self.ids, lambda: NO_SECRETS)
        tools = CopyTools(
            self.rows, self.leases, self.copies, self.states, self.signatures, self.refs, self.clock, self.name
        )
        mirror = Mirror(
            tools,
            JournalFolder(self.folder / "mirror", None),
            LocalSessionStore(self.folder / "mirror", none, self.ids, lambda: NO_SECRETS),
        )
        store = SharedSessionStore(local, tools, mirror, lambda _: False)
        self.stores.append(store)
        return store

    async def close(self) -> None:
        """End what the processes left running."""
        await asyncio.gather(*(each.close() for each in self.stores))
        await self.database.close()
