"""The port `Trust` over the user's trust store: asked once, and again whenever what would run has changed."""

import asyncio
from pathlib import Path

from agent_workbench.config.settings_loader import LoadedSettings
from agent_workbench.config.trust_question import TrustQuestion, trust_question
from agent_workbench.config.trust_store import TrustStore

CHANGED = "Changed since you trusted it:"


class RepoTrust:
    """What the repo at `root` would have us run or obey, and the user's answer to it."""

    def __init__(self, root: Path, loaded: LoadedSettings, store: TrustStore) -> None:
        self._root = root
        self._loaded = loaded
        self._store = store
        self._asked: TrustQuestion | None = None

    async def question(self) -> tuple[str, ...]:
        """Return what has to be trusted, a line each, nothing when it was."""
        return await asyncio.to_thread(self._question)

    async def untrusted(self) -> tuple[str, ...]:
        """Return the names of the settings and skill folders that do not count as they are not trusted."""
        asked = await self.question() and self._asked
        return tuple(asked.items) if asked else ()

    async def accept(self) -> None:
        """Remember the yes to what `question` returned last, not to what the repo holds by now."""
        if self._asked is not None:
            await asyncio.to_thread(self._store.trust, self._root, self._asked)

    async def revoke(self) -> bool:
        """Forget the repo; return whether it was trusted."""
        return await asyncio.to_thread(self._store.revoke, self._root)

    def is_trusted(self) -> bool:
        """Return whether nothing is left to ask. Blocks."""
        return not self._question()

    def _question(self) -> tuple[str, ...]:
        asked = trust_question(self._root, self._loaded, self._store.trusted_items(self._root))
        if self._store.is_trusted(self._root, asked):
            return ()
        self._asked = asked
        return (*asked.lines, "", CHANGED, *asked.changes) if asked.changes else asked.lines
