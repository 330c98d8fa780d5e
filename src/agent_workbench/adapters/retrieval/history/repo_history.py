"""Commit history of one repo: read from git, counted once, kept between runs."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent_workbench.adapters.retrieval.history.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.history.commit_words import MAX_COMMITS, CountedCommits, count_commits
from agent_workbench.adapters.retrieval.history.history_file import load_commits, save_commits
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import PastCommit


class RepoHistory:
    """The commits of one repo, kept in `file` between runs; `commit_index` is None until they were read."""

    def __init__(self, file: Path) -> None:
        self.commit_index: CommitIndex | None = None
        self._file = file
        self._known: CountedCommits | None = None
        self._one_at_a_time = asyncio.Lock()

    async def update(self, sources: Sources) -> None:
        """Read new commits. Raises what `sources` raises; a disk that refuses is ignored."""
        async with self._one_at_a_time:
            known = self._known if self._known is not None else await asyncio.to_thread(load_commits, self._file)
            commits = await _updated(sources, known)
            if self.commit_index is None or commits is not self._known:
                self.commit_index = await asyncio.to_thread(CommitIndex, commits)
            self._known = commits
            if commits is not known:
                await asyncio.to_thread(save_commits, self._file, commits)


async def _updated(sources: Sources, known: CountedCommits) -> CountedCommits:
    """Return the newest commits, including the known ones unless the history was rewritten."""
    if known.ids:
        fresh = await sources.past_commits(MAX_COMMITS, str(known.ids[0]))
        if fresh:
            return await asyncio.to_thread(_joined, fresh, known)
        newest = await sources.past_commits(1)
        if newest and newest[0].id in set(known.ids):
            return known
    commits = await sources.past_commits(MAX_COMMITS)
    return await asyncio.to_thread(count_commits, commits) if commits or known.ids else known


def _joined(fresh: Sequence[PastCommit], known: CountedCommits) -> CountedCommits:
    return count_commits(fresh).concatenated(known)
