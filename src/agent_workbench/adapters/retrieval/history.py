"""What the past says of files: the messages of the commits that touched them."""

import asyncio
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from agent_workbench.adapters.retrieval.query import plain, title_of
from agent_workbench.adapters.retrieval.view import IndexView
from agent_workbench.core.errors import StorageError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.ports import Sources
from agent_workbench.core.retrieval import PastCommit
from agent_workbench.host.atomic import write_atomically
from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.stems import count_stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Numbers = NDArray[np.int64]

MOST_COMMITS = 5_000
# A commit that touches more files than these is about none of them.
_MOST_FILES = 20
_MOST_CHARS = 2_000
_FORMAT = 1
# All commits together; beyond it the file is somebody else's.
_MOST_BYTES = 64_000_000
_MESSAGE_LENGTH = 0.5
_NEAREST, _NEAREST_TITLES = 30, 100
# After so many commits what was done to a file counts a third of what it did.
_LATELY = 500


class Past:
    """Commits, searched by the words of their messages. Never changes; files are numbered as in `paths`."""

    def __init__(self, commits: Iterable[PastCommit]) -> None:
        """Takes about a second for 5,000 commits: for a thread."""
        import numpy as np

        self.commits = tuple(each for each in commits if 0 < len(each.paths) <= _MOST_FILES)[:MOST_COMMITS]
        numbers: dict[str, int] = {}
        for commit in self.commits:
            for path in commit.paths:
                numbers.setdefault(path, len(numbers))
        self.paths = tuple(numbers)
        self._numbers = numbers
        touched = [[numbers[path] for path in commit.paths] for commit in self.commits]
        messages = [count_stems(plain(commit.message[:_MOST_CHARS])) for commit in self.commits]
        titles = [count_stems(title_of(commit.message[:_MOST_CHARS])) for commit in self.commits]
        self._messages = Bm25.of(messages)
        self._titles = Bm25.of(titles)
        self._titles_of = Bm25.of(_by_file(titles, touched, len(numbers)))
        sizes = [len(each) for each in touched]
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        self._touched = np.array([file for files in touched for file in files], dtype=np.int64)
        self.recent = self._recent(sizes)
        self._rows: tuple[ReferenceType[IndexView], tuple[Numbers, Numbers]] | None = None

    def titles(self, stems: Sequence[str]) -> "Scores":
        """Return by file how well the first lines of its commits' messages fit."""
        return self._titles_of.scores(stems)

    def nearest(self, stems: Sequence[str]) -> "Scores":
        """Return by file the votes of the commits whose messages fit best: each has one, for all its files together."""
        return self._votes(self._messages.scores(stems), _NEAREST)

    def nearest_titles(self, stems: Sequence[str]) -> "Scores":
        """Return the same by the first lines of the messages; these are less sure, so more of them vote."""
        return self._votes(self._titles.scores(stems), _NEAREST_TITLES)

    def rows_in(self, view: IndexView) -> "tuple[Numbers, Numbers]":
        """Return the numbers that files have in the view, and beside them those they have here."""
        import numpy as np

        if self._rows is None or self._rows[0]() is not view:
            found = ((-1 if number is None else number) for number in map(view.number_of, self.paths))
            rows = np.fromiter(found, np.int64, len(self.paths))
            known = np.flatnonzero(rows >= 0)
            self._rows = ref(view), (rows[known], known)
        return self._rows[1]

    def _recent(self, sizes: Sequence[int]) -> "Scores":
        """Return by file how much was done to it lately."""
        import numpy as np

        weights = np.repeat(np.exp(-np.arange(len(sizes)) / _LATELY), sizes)
        lately: Scores = np.log1p(np.bincount(self._touched, weights, minlength=len(self.paths)))
        return lately

    def _votes(self, scores: "Scores", most: int) -> "Scores":
        import numpy as np

        top = float(scores.max(initial=0.0))
        if top <= 0:
            return np.zeros(len(self.paths))
        best = np.argpartition(-scores, most)[:most] if len(scores) > most else np.arange(len(scores))
        best = best[scores[best] > 0]
        begins, sizes = self._starts[best], self._starts[best + 1] - self._starts[best]
        places = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        each = np.repeat((scores[best] / top) ** 2 / sizes, sizes)
        return np.bincount(self._touched[places], each, minlength=len(self.paths)).astype(np.float64, copy=False)

    def words_of(self, paths: Sequence[str], stems: Sequence[str]) -> list[list[str]]:
        """Return for each file which of the stems the first lines of its commits' messages hold, best first."""
        rows = [row for path in paths if (row := self._numbers.get(path)) is not None]
        told = dict(zip(rows, self._titles_of.explain_all(rows, stems), strict=True))
        return [[root for root, _ in told.get(self._numbers.get(path, -1), [])] for path in paths]


class History:
    """The past of one repo, kept in `file` between runs. `past` is what searches take: swapped whole, None at first."""

    def __init__(self, file: Path) -> None:
        self.past: Past | None = None
        self._file = file
        self._known: tuple[PastCommit, ...] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def update(self, sources: Sources) -> None:
        """Read the commits that are new. Raises what `sources` raises; a disk that refuses keeps nothing."""
        async with self._one_at_a_time:
            known = self._known if self._known is not None else await asyncio.to_thread(_load, self._file)
            commits = await _brought_up(sources, known)
            if self.past is None or commits != self._known:
                self.past = await asyncio.to_thread(Past, commits)
            self._known = commits
            if commits != known:
                await asyncio.to_thread(_save, self._file, commits)


async def _brought_up(sources: Sources, known: tuple[PastCommit, ...]) -> tuple[PastCommit, ...]:
    """Return the newest commits, the known ones among them unless the history was rewritten."""
    if not known:
        return await sources.past_commits(MOST_COMMITS)
    fresh = await sources.past_commits(MOST_COMMITS, str(known[0].id))
    if not fresh:
        newest = await sources.past_commits(1)
        ids = {commit.id for commit in known}
        return known if newest and newest[0].id in ids else await sources.past_commits(MOST_COMMITS)
    ids = {commit.id for commit in fresh}
    return (*fresh, *(commit for commit in known if commit.id not in ids))[:MOST_COMMITS]


def _by_file(
    messages: Sequence[Mapping[str, int]], touched: Sequence[Sequence[int]], files: int
) -> Sequence[Mapping[str, int]]:
    """Return by file the words of all its commits."""
    counts: list[Counter[str]] = [Counter() for _ in range(files)]
    for words, numbers in zip(messages, touched, strict=True):
        for number in numbers:
            counts[number].update(words)
    return counts


def _load(file: Path) -> tuple[PastCommit, ...]:
    """Return what was kept; nothing where it cannot be read as what `_save` writes."""
    try:
        with gzip.open(file, "rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        read = json.loads(text) if len(text) <= _MOST_BYTES else None
        if not isinstance(read, dict) or read.get("format") != _FORMAT:
            return ()
        return tuple(_commit(*each) for each in read["commits"])
    except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError):
        return ()


def _commit(name: object, message: object, paths: object) -> PastCommit:
    if not (isinstance(name, str) and isinstance(message, str) and isinstance(paths, list)):
        raise ValueError(name)
    if not all(isinstance(path, str) for path in paths):
        raise ValueError(name)
    return PastCommit(CommitId(name), message, tuple(paths))


def _save(file: Path, commits: Sequence[PastCommit]) -> None:
    rows = [[commit.id, commit.message[:_MOST_CHARS], commit.paths[: _MOST_FILES + 1]] for commit in commits]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, gzip.compress(json.dumps({"format": _FORMAT, "commits": rows}).encode(), 5))
    except (OSError, StorageError):
        # It is read anew the next time, which takes a second.
        return
