"""Index of commit messages: their words and paths, and for a query the commits that match it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.postings import inverted
from agent_workbench.ranking.postings_reader import IndexPart
from agent_workbench.ranking.tokens import count_stems
from agent_workbench.ranking.vocabulary import IndexVocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Numbers = NDArray[np.int64]
    Ints = NDArray[np.int32]
    Mask = NDArray[np.bool_]


MAX_COMMITS = 5_000
MAX_CHARS = 2_000
# A commit that touches more files says nothing about each of them.
MAX_FILES = 20
# Trailers, addresses and numbers of issues: what tools and customs add to a message.
_NOISE = re.compile(
    r"^[ \t]*[A-Za-z][\w-]{1,30}-by: .*$|^[ \t]*(?:change-id|cc)[ \t]*:.*$|https?://\S{1,2000}|\(?#\d{1,9}\)?",
    re.MULTILINE | re.IGNORECASE,
)

_NEAREST, _NEAREST_TITLES = 30, 100
# A commit this far back counts a third of the newest one.
_RECENT_COMMITS = 500


class TextWords(Struct, frozen=True):
    """Word counts of several texts: text `n` has the next `sizes[n]` entries of `words` and `counts`.

    `words` are positions in the words of the `CountedCommits` that holds them.
    """

    sizes: "Ints"
    words: "Ints"
    counts: "Ints"

    @classmethod
    def of(cls, texts: Sequence[Mapping[str, int]], number_of: Mapping[str, int]) -> "TextWords":
        """Return the word counts of these texts as arrays."""
        import numpy as np

        sizes = np.fromiter(map(len, texts), np.int32, len(texts))
        total = int(sizes.sum())
        words = np.fromiter(map(number_of.__getitem__, chain.from_iterable(texts)), np.int32, total)
        counts = np.fromiter(chain.from_iterable(each.values() for each in texts), np.int32, total)
        return cls(sizes, words, counts)

    def concatenated(self, other: "TextWords") -> "TextWords":
        """Return these texts followed by `other`, which has the same word numbers."""
        import numpy as np

        return TextWords(
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.words, other.words]),
            np.concatenate([self.counts, other.counts]),
        )

    def only(self, kept: "Mask") -> "TextWords":
        """Return the texts that the mask selects."""
        import numpy as np

        entries = np.repeat(kept, self.sizes)
        return TextWords(self.sizes[kept], self.words[entries], self.counts[entries])

    def renumbered(self, numbers: "Ints") -> "TextWords":
        """Return the texts with each word number `n` replaced by `numbers[n]`."""
        return TextWords(self.sizes, numbers[self.words], self.counts)


class CountedCommits(Struct, frozen=True, eq=False):
    """Commits, newest first, and their sorted `words`.

    A commit that touched no file or too many has neither `paths` nor words.
    """

    ids: tuple[CommitId, ...]
    paths: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    messages: TextWords
    titles: TextWords

    def concatenated(self, older: "CountedCommits") -> "CountedCommits":
        """Return these commits followed by the older ones not among them, `MAX_COMMITS` at most."""
        import numpy as np

        here = set(self.ids)
        kept = np.array([commit not in here for commit in older.ids], bool)
        kept &= np.cumsum(kept) + len(self.ids) <= MAX_COMMITS
        places = np.flatnonzero(kept).tolist()
        number_of = {word: number for number, word in enumerate(dict.fromkeys((*self.words, *older.words)))}
        numbers = np.array([number_of[word] for word in older.words], np.int32)
        messages = self.messages.concatenated(older.messages.only(kept).renumbered(numbers))
        titles = self.titles.concatenated(older.titles.only(kept).renumbered(numbers))
        said = set(messages.words.tolist()).union(titles.words.tolist())
        words = sorted(word for word, number in number_of.items() if number in said)
        numbers = np.zeros(len(number_of), np.int32)
        numbers[[number_of[word] for word in words]] = np.arange(len(words))
        return CountedCommits(
            self.ids + tuple(older.ids[place] for place in places),
            self.paths + tuple(older.paths[place] for place in places),
            tuple(words),
            messages.renumbered(numbers),
            titles.renumbered(numbers),
        )


def without_trailers(text: str) -> str:
    """Return a message without trailers (`Signed-off-by`), URLs and numbers of issues."""
    return _NOISE.sub(" ", text)


def title_of(message: str) -> str:
    """Return the first line of a message, without noise."""
    return without_trailers(message).strip().partition("\n")[0]


def count_commits(commits: Iterable[PastCommit]) -> CountedCommits:
    """Return the word counts of the newest `MAX_COMMITS` commits. Blocks for up to two seconds."""
    some = tuple(commits)[:MAX_COMMITS]
    paths = tuple(each.paths if len(each.paths) <= MAX_FILES else () for each in some)
    texts = [each.message[:MAX_CHARS] if touched else "" for each, touched in zip(some, paths, strict=True)]
    messages = [count_stems(without_trailers(text)) for text in texts]
    titles = [count_stems(title_of(text)) for text in texts]
    words = tuple(sorted(set(chain.from_iterable(chain(messages, titles)))))
    number_of = {word: number for number, word in enumerate(words)}
    return CountedCommits(
        tuple(each.id for each in some),
        paths,
        words,
        TextWords.of(messages, number_of),
        TextWords.of(titles, number_of),
    )


class CommitIndex:
    """Commits ranked by the words of their messages. Immutable; files are numbered as in `paths`."""

    def __init__(self, commits: Iterable[PastCommit] | CountedCommits) -> None:
        """Index commits. Blocks, for up to two seconds for 5,000 commits that are not counted yet."""
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
        vocabulary = IndexVocabulary.of([word.encode("utf-8", "surrogatepass") for word in counted.words])
        titles, messages = counted.titles.only(kept), counted.messages.only(kept)
        self._messages = _scorer(vocabulary, messages)
        self._messages_of = _scorer(vocabulary, self._by_file(messages, sizes))
        self._titles = _scorer(vocabulary, titles)
        self._titles_of = _scorer(vocabulary, self._by_file(titles, sizes))
        self.recent = self._recent(sizes)
        self._rows: tuple[ReferenceType[IndexView], tuple[Numbers, Numbers]] | None = None

    def messages(self, stems: Sequence[str]) -> "Scores":
        """Return for each file the score of its commits' messages."""
        return self._messages_of.scores(stems)

    def titles(self, stems: Sequence[str]) -> "Scores":
        """Return for each file the score of the first lines of these messages."""
        return self._titles_of.scores(stems)

    def nearest(self, stems: Sequence[str]) -> "Scores":
        """Return for each file the votes of the best commits; each commit divides one vote among its files."""
        return self._votes(self._messages.scores(stems), _NEAREST)

    def nearest_titles(self, stems: Sequence[str]) -> "Scores":
        """Return the same for the first lines of messages; they are less reliable, so more commits vote."""
        return self._votes(self._titles.scores(stems), _NEAREST_TITLES)

    def rows_in(self, view: IndexView) -> "tuple[Numbers, Numbers]":
        """Return the numbers of the files in the view, and their numbers here."""
        import numpy as np

        if self._rows is None or self._rows[0]() is not view:
            found = ((-1 if number is None else number) for number in map(view.number_of, self.paths))
            rows = np.fromiter(found, np.int64, len(self.paths))
            known = np.flatnonzero(rows >= 0)
            self._rows = ref(view), (rows[known], known)
        return self._rows[1]

    def _by_file(self, titles: TextWords, sizes: "Numbers") -> TextWords:
        """Return the words of each file: those of all its commits, which touched `sizes` files each."""
        import numpy as np

        begins = np.cumsum(titles.sizes, dtype=np.int64) - titles.sizes
        # For each touched file of each commit: the number of the commit's words, and their positions.
        many = np.repeat(titles.sizes, sizes)
        places = np.repeat(np.repeat(begins, sizes) - np.cumsum(many, dtype=np.int64) + many, many)
        places += np.arange(len(places))
        words = int(titles.words.max(initial=0)) + 1
        pairs, which = np.unique(np.repeat(self._touched, many) * words + titles.words[places], return_inverse=True)
        counts = np.bincount(which, titles.counts[places], minlength=len(pairs))
        of_file = np.bincount(pairs // words, minlength=len(self.paths))
        return TextWords(of_file.astype(np.int32), (pairs % words).astype(np.int32), counts.astype(np.int32))

    def _recent(self, sizes: "Numbers") -> "Scores":
        """Return for each file a score of the recent commits that touched it."""
        import numpy as np

        weights = np.repeat(np.exp(-np.arange(len(sizes)) / _RECENT_COMMITS), sizes)
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
        """Return for each file the stems in the first lines of its commits' messages, best first.

        Without any, return those in the messages of the commits that voted for it.
        """
        rows = [row for path in paths if (row := self._numbers.get(path)) is not None]
        explained = self._titles_of.explain_all(rows, stems)
        found = {row: [root for root, _ in hits] for row, hits in zip(rows, explained, strict=True)}
        if not all(found.values()):
            nearest_words = self._words_of_nearest(stems)
            found = {row: roots or nearest_words.get(row, []) for row, roots in found.items()}
        return [found.get(self._numbers.get(path, -1), []) for path in paths]

    def _words_of_nearest(self, stems: Sequence[str]) -> dict[int, list[str]]:
        """Return for each file the stems in the messages of the best commits, the best commit's first."""
        scores = self._messages.scores(stems)
        nearest = sorted(_best(scores, _NEAREST).tolist(), key=lambda commit: -scores[commit])
        nearest_words: dict[int, dict[str, None]] = {}
        for commit, hits in zip(nearest, self._messages.explain_all(nearest, stems), strict=True):
            for file in self._touched[self._starts[commit] : self._starts[commit + 1]].tolist():
                nearest_words.setdefault(file, {}).update(dict.fromkeys(root for root, _ in hits))
        return {file: list(roots) for file, roots in nearest_words.items()}


def _best(scores: "Scores", most: int) -> "Numbers":
    """Return the rows of the `most` best scores above 0, in no order."""
    import numpy as np

    best = np.argpartition(-scores, most)[:most] if len(scores) > most else np.arange(len(scores))
    found: Numbers = best[scores[best] > 0]
    return found


def _scorer(vocabulary: IndexVocabulary, nearest_words: TextWords) -> Bm25:
    return Bm25(
        [
            IndexPart(
                vocabulary, inverted(nearest_words.sizes, nearest_words.words, nearest_words.counts, len(vocabulary))
            )
        ]
    )
