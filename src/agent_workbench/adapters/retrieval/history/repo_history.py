"""What the past says of files: the messages of the commits that touched them."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from agent_workbench.adapters.retrieval.history.commit_words import (
    MOST_COMMITS,
    CountedCommits,
    TextWords,
    count_commits,
)
from agent_workbench.adapters.retrieval.history.history_file import load_commits, save_commits
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.retrieval import PastCommit
from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.postings import inverted
from agent_workbench.ranking.postings_reader import IndexPart
from agent_workbench.ranking.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Numbers = NDArray[np.int64]

_NEAREST, _NEAREST_TITLES = 30, 100
# After so many commits what was done to a file counts a third of what it did.
_LATELY = 500


class CommitIndex:
    """Commits, searched by the words of their messages. Never changes; files are numbered as in `paths`."""

    def __init__(self, commits: Iterable[PastCommit] | CountedCommits) -> None:
        """Takes up to two seconds for 5,000 commits that are not counted: for a thread."""
        import numpy as np

        counted = commits if isinstance(commits, CountedCommits) else count_commits(commits)
        kept = np.array([bool(paths) for paths in counted.paths], bool)
        touched = [paths for paths in counted.paths if paths]
        self.ids = tuple(commit for commit, paths in zip(counted.ids, counted.paths, strict=True) if paths)
        self._numbers = {path: row for row, path in enumerate(dict.fromkeys(chain.from_iterable(touched)))}
        self.paths = tuple(self._numbers)
        sizes = np.fromiter(map(len, touched), np.int64, len(touched))
        self._starts: Numbers = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        files = map(self._numbers.__getitem__, chain.from_iterable(touched))
        self._touched: Numbers = np.fromiter(files, np.int64, int(sizes.sum()))
        vocabulary = Vocabulary.of([word.encode("utf-8", "surrogatepass") for word in counted.words])
        titles = counted.titles.only(kept)
        self._messages = _searched(vocabulary, counted.messages.only(kept))
        self._titles = _searched(vocabulary, titles)
        self._titles_of = _searched(vocabulary, self._by_file(titles, sizes))
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

    def _by_file(self, titles: TextWords, sizes: "Numbers") -> TextWords:
        """Return by file the words of all its commits, of which each touched `sizes` files."""
        import numpy as np

        begins = np.cumsum(titles.sizes, dtype=np.int64) - titles.sizes
        # By touched file how many words are said of it, and where they stand.
        many = np.repeat(titles.sizes, sizes)
        places = np.repeat(np.repeat(begins, sizes) - np.cumsum(many, dtype=np.int64) + many, many)
        places += np.arange(len(places))
        words = int(titles.words.max(initial=0)) + 1
        pairs, which = np.unique(np.repeat(self._touched, many) * words + titles.words[places], return_inverse=True)
        counts = np.bincount(which, titles.counts[places], minlength=len(pairs))
        of_file = np.bincount(pairs // words, minlength=len(self.paths))
        return TextWords(of_file.astype(np.int32), (pairs % words).astype(np.int32), counts.astype(np.int32))

    def _recent(self, sizes: "Numbers") -> "Scores":
        """Return by file how much was done to it lately."""
        import numpy as np

        weights = np.repeat(np.exp(-np.arange(len(sizes)) / _LATELY), sizes)
        lately: Scores = np.log1p(np.bincount(self._touched, weights, minlength=len(self.paths)))
        return lately

    def _votes(self, scores: "Scores", most: int) -> "Scores":
        import numpy as np

        best = _best(scores, most)
        if not len(best):
            return np.zeros(len(self.paths))
        top = float(scores[best].max())
        begins, sizes = self._starts[best], self._starts[best + 1] - self._starts[best]
        places = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        each = np.repeat((scores[best] / top) ** 2 / sizes, sizes)
        return np.bincount(self._touched[places], each, minlength=len(self.paths)).astype(np.float64, copy=False)

    def words_of(self, paths: Sequence[str], stems: Sequence[str]) -> list[list[str]]:
        """Return for each file which of the stems the first lines of its commits' messages hold, best first.

        Where they hold none, those in the messages of the commits that voted for it.
        """
        rows = [row for path in paths if (row := self._numbers.get(path)) is not None]
        explained = self._titles_of.explain_all(rows, stems)
        told = {row: [root for root, _ in hits] for row, hits in zip(rows, explained, strict=True)}
        if not all(told.values()):
            said = self._said_nearest(stems)
            told = {row: roots or said.get(row, []) for row, roots in told.items()}
        return [told.get(self._numbers.get(path, -1), []) for path in paths]

    def _said_nearest(self, stems: Sequence[str]) -> dict[int, list[str]]:
        """Return by file the stems in the messages of the commits that fit best, the best one's first."""
        scores = self._messages.scores(stems)
        nearest = sorted(_best(scores, _NEAREST).tolist(), key=lambda commit: -scores[commit])
        said: dict[int, dict[str, None]] = {}
        for commit, hits in zip(nearest, self._messages.explain_all(nearest, stems), strict=True):
            for file in self._touched[self._starts[commit] : self._starts[commit + 1]].tolist():
                said.setdefault(file, {}).update(dict.fromkeys(root for root, _ in hits))
        return {file: list(roots) for file, roots in said.items()}


def _best(scores: "Scores", most: int) -> "Numbers":
    """Return the rows of the best scores above 0, at most so many, in no order."""
    import numpy as np

    best = np.argpartition(-scores, most)[:most] if len(scores) > most else np.arange(len(scores))
    found: Numbers = best[scores[best] > 0]
    return found


class RepoHistory:
    """The past of one repo, kept in `file` between runs. `past` is what searches take: swapped whole, None at first."""

    def __init__(self, file: Path) -> None:
        self.past: CommitIndex | None = None
        self._file = file
        self._known: CountedCommits | None = None
        self._one_at_a_time = asyncio.Lock()

    async def update(self, sources: Sources) -> None:
        """Read the commits that are new. Raises what `sources` raises; a disk that refuses keeps nothing."""
        async with self._one_at_a_time:
            known = self._known if self._known is not None else await asyncio.to_thread(load_commits, self._file)
            commits = await _brought_up(sources, known)
            if self.past is None or commits is not self._known:
                self.past = await asyncio.to_thread(CommitIndex, commits)
            self._known = commits
            if commits is not known:
                await asyncio.to_thread(save_commits, self._file, commits)


async def _brought_up(sources: Sources, known: CountedCommits) -> CountedCommits:
    """Return the newest commits, the known ones among them unless the history was rewritten."""
    if known.ids:
        fresh = await sources.past_commits(MOST_COMMITS, str(known.ids[0]))
        if fresh:
            return await asyncio.to_thread(_joined, fresh, known)
        newest = await sources.past_commits(1)
        if newest and newest[0].id in set(known.ids):
            return known
    commits = await sources.past_commits(MOST_COMMITS)
    return await asyncio.to_thread(count_commits, commits) if commits or known.ids else known


def _joined(fresh: Sequence[PastCommit], known: CountedCommits) -> CountedCommits:
    return count_commits(fresh).followed_by(known)


def _searched(vocabulary: Vocabulary, said: TextWords) -> Bm25:
    return Bm25([IndexPart(vocabulary, inverted(said.sizes, said.words, said.counts, len(vocabulary)))])
