"""The user's own checkout as the code search reads it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from agent_workbench.adapters.git.commands.commit_log import past_commits
from agent_workbench.adapters.git.file_access.folders import read_files
from agent_workbench.adapters.git.user_checkout.checkout import Checkout
from agent_workbench.core.retrieval import PastCommit


class CheckoutFiles:
    """Satisfies `core.workspace_ports.Sources`; `checkout` looks at the repository as configured at the moment."""

    def __init__(self, checkout: Callable[[], Checkout]) -> None:
        """Blocks while the repository is looked for; raises `RepoError` where there is none."""
        self._checkout = checkout
        self._root = checkout().place.root

    @property
    def root(self) -> str:
        return self._root

    async def list_files(self) -> tuple[str, ...]:
        return await asyncio.to_thread(lambda: self._checkout().files())

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        return await asyncio.to_thread(read_files, self._root, paths)

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        return await asyncio.to_thread(lambda: self._past(limit, until))

    def _past(self, limit: int, until: str) -> tuple[PastCommit, ...]:
        return past_commits(self._checkout().plumbing, "HEAD", limit, until)
