"""Names of the files in a folder, listed again only after a while: completion asks for them at every key."""

import asyncio

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ports.machine import Clock
from agent_workbench.core.ports.workspace import Sources

FRESH_SECONDS = 10.0


class FileNames:
    """Keeps the names of the files of one folder at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._root = ""
        self._since = 0.0
        self._listing: asyncio.Task[tuple[str, ...]] | None = None

    async def of(self, sources: Sources) -> tuple[str, ...]:
        """Return the files of a folder as `Sources.list_files` does; a question that is cancelled keeps the listing."""
        now = self._clock.monotonic_seconds()
        if self._listing is None or self._root != sources.root or now - self._since > FRESH_SECONDS:
            await self.close()
            self._root, self._since = sources.root, now
            self._listing = asyncio.create_task(_listed(sources))
        listing = self._listing
        try:
            return await asyncio.shield(listing)
        except WorkbenchError:
            self._listing = None
            raise

    async def close(self) -> None:
        """Cancel the listing that runs."""
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.gather(self._listing, return_exceptions=True)
            self._listing = None


async def _listed(sources: Sources) -> tuple[str, ...]:
    return await sources.list_files()
