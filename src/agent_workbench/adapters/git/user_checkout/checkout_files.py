"""Files and commits of the user's checkout, as the code search reads them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from agent_workbench.adapters.git.commands.commit_log import past_commits
from agent_workbench.adapters.git.file_access.folders import read_files
from agent_workbench.adapters.git.user_checkout.checkout import Checkout
from agent_workbench.core.repo.retrieval import PastCommit


class CheckoutFiles:
    """The port `core.ports.workspace.CheckoutSources`; `checkout` returns the checkout as it is configured now."""

    def __init__(self, checkout: Callable[[], Checkout]) -> None:
        """Find the repository; raise `RepoError` if there is none. Blocks."""
        self._checkout = checkout
        self._root = checkout().paths.root

    @property
    def root(self) -> str:
        return self._root

    async def list_files(self) -> tuple[str, ...]:
        return await asyncio.to_thread(lambda: self._checkout().files())

    async def absent_sources(self) -> tuple[str, ...]:
        return await asyncio.to_thread(lambda: self._checkout().absent_sources())

    async def linkable(self, names: Sequence[str]) -> tuple[str, ...]:
        return await asyncio.to_thread(lambda: self._checkout().linkable(names))

    def first_commit(self) -> str:
        """Return the commit that HEAD began with, which all whole clones have; raise `RepoError`. Blocks."""
        return self._checkout().first_commit()

    def tracked_in(self, folder: str) -> frozenset[str] | None:
        """Return the names in a folder that git tracks, None if it is a submodule's. Blocks."""
        return self._checkout().tracked_in(folder)

    async def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        return await asyncio.to_thread(read_files, self._root, paths)

    async def past_commits(self, limit: int, until: str = "") -> tuple[PastCommit, ...]:
        return await asyncio.to_thread(lambda: self._past(limit, until))

    def _past(self, limit: int, until: str) -> tuple[PastCommit, ...]:
        return past_commits(self._checkout().plumbing, None, limit, until)
