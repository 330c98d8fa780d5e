"""Commit histories of the searched repos: counted in the background, and kept in files between runs."""

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.commit_index import (
    MAX_CHARS,
    MAX_COMMITS,
    MAX_FILES,
    CommitIndex,
    CountedCommits,
    TextWords,
    count_commits,
)
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import StorageError, TrustError, WorkbenchError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.system.atomic_files import write_atomically

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]


# Raise it whenever the stored content or the counting of words changes; older files are then ignored.
_FORMAT = 2
# Uncompressed size; a larger file is not ours.
_MAX_BYTES = 64_000_000
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class FolderHistories:
    """Histories by the root of a searched folder; `file_of` returns the file in which that of its repo is kept."""

    def __init__(self, file_of: Callable[[str], Path]) -> None:
        self._file_of = file_of
        self._of_file: dict[Path, RepoHistory] = {}
        self._of_root: dict[str, RepoHistory] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def of(self, root: str) -> CommitIndex | None:
        """Return the commits of the folder's repo, None until they were read."""
        history = self._of_root.get(root)
        return history.commit_index if history else None

    def begin(self, sources: Sources) -> None:
        """Read new commits in the background."""
        if sources.root not in self._running:
            self._running[sources.root] = in_background(self._update(sources))

    async def settled(self, root: str, seconds: float | None = None) -> None:
        """Wait until the folder's commits are read, at most `seconds`."""
        if root in self._running:
            await asyncio.wait({self._running[root]}, timeout=seconds)

    async def close(self) -> None:
        """Cancel the tasks in the background."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _update(self, sources: Sources) -> None:
        root = sources.root
        try:
            if root not in self._of_root:
                file = await asyncio.to_thread(self._file_of, root)
                self._of_root[root] = self._of_file.setdefault(file, RepoHistory(file))
            # Git may be locked or broken at the moment: code is searched without new commits.
            with suppress(WorkbenchError):
                await self._of_root[root].update(sources)
        finally:
            del self._running[root]


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


def load_commits(file: Path) -> CountedCommits:
    """Return the saved commits, none from a file that `save_commits` did not write. Blocks."""
    try:
        with gzip.open(file, "rb") as stream:
            text = stream.read(_MAX_BYTES + 1)
        return _commits(json.loads(text)) if len(text) <= _MAX_BYTES else count_commits(())
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return count_commits(())


def save_commits(file: Path, commits: CountedCommits) -> None:
    """Save commits. If the disk refuses, they are counted again the next time. Blocks."""
    content = {
        "format": _FORMAT,
        "commits": list(zip(commits.ids, commits.paths, strict=True)),
        "words": commits.words,
        "messages": _lists(commits.messages),
        "titles": _lists(commits.titles),
    }
    data = json.dumps(content, separators=(",", ":")).encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(file, gzip.compress(data, 5))
    except (OSError, StorageError, TrustError):
        return


def _lists(said: TextWords) -> list[list[int]]:
    return [said.sizes.tolist(), said.words.tolist(), said.counts.tolist()]


def _commits(read: object) -> CountedCommits:
    match read:
        case {"format": int(number), "commits": [*rows], "words": [*words], "messages": messages, "titles": titles} if (
            number == _FORMAT and len(rows) <= MAX_COMMITS
        ):
            commits, told = [_commit(row) for row in rows], _words(words)
            said = [_said(each, len(commits), len(told)) for each in (messages, titles)]
            return CountedCommits(tuple(name for name, _ in commits), tuple(paths for _, paths in commits), told, *said)
        case _:
            raise ValueError("no commits")


def _commit(row: object) -> tuple[CommitId, tuple[str, ...]]:
    match row:
        # The id becomes an argument of git.
        case [str(name), [*paths]] if _COMMIT.fullmatch(name) and len(paths) <= MAX_FILES:
            return CommitId(name), _texts(paths)
        case _:
            raise ValueError("no commit")


def _texts(read: list[object]) -> tuple[str, ...]:
    texts = tuple(each for each in read if isinstance(each, str))
    if len(texts) < len(read):
        raise ValueError("no text")
    return texts


def _words(read: list[object]) -> tuple[str, ...]:
    words = _texts(read)
    if any(first >= second for first, second in pairwise(words)) or any("\n" in word for word in words):
        raise ValueError("words that are not in order")
    return words


def _said(read: object, texts: int, words: int) -> TextWords:
    match read:
        case [[*sizes], [*numbers], [*counts]] if len(sizes) == texts and len(numbers) == len(counts):
            said = TextWords(_ints(sizes, 0, MAX_CHARS), _ints(numbers, 0, words - 1), _ints(counts, 1, MAX_CHARS))
            if int(said.sizes.sum()) == len(numbers):
                return said
    raise ValueError("no words of texts")


def _ints(read: list[object], least: int, most: int) -> "Ints":
    """Return the numbers, each from `least` to `most`; raise `ValueError`."""
    import numpy as np

    if not set(map(type, read)) <= {int}:
        raise ValueError("no numbers")
    try:
        found = np.array(read, np.int32)
    except OverflowError as error:
        raise ValueError("no such numbers") from error
    if len(found) and not (found.min() >= least and found.max() <= most):
        raise ValueError("no such numbers")
    return found
