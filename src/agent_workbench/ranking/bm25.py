"""BM25 (Okapi) over documents of which some may be gone, as `rank_bm25.BM25Okapi` scores them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from agent_workbench.ranking.postings import Postings, build, spread
from agent_workbench.ranking.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Counts = NDArray[np.int_]
    Rows = NDArray[np.intp]
    Mask = NDArray[np.bool_]

K1, B, EPSILON = 1.5, 0.75, 0.25
# So many postings are scored at a time: they stay within the processor's own memory.
_SCORED_AT_ONCE = 100_000
# In fewer postings than these it is counted anew which words are left when documents are gone.
_WORTH_COUNTING = 300_000
_MOST_REMEMBERED = 4_096


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the documents: their words, where these are, and which documents are alive (None: all)."""

    vocabulary: Vocabulary
    postings: Postings
    alive: "Mask | None" = None


@dataclass(frozen=True, slots=True)
class _Hits:
    """Postings of some words: their documents, how often the word is there, and by word how many there are."""

    words: Sequence[str]
    rows: "Rows"
    counts: "Scores"
    sizes: Sequence[int]


class Bm25:
    """The scores of documents, numbered through all parts in their order; computed only where a word hits.

    They equal those of `BM25Okapi` over the living documents, with one exception. A word that is in more than half of
    the documents gets a share of the mean over all words, and that mean is taken over the largest part alone, and while
    that is large (300 000 postings), with its dead documents. So all is exact for one part without dead documents, as
    a build or merge makes it, and for small ones with them. Not for several threads at once.
    """

    def __init__(self, parts: Sequence[Part], *, k1: float = K1, b: float = B, epsilon: float = EPSILON) -> None:
        import numpy as np

        self._parts = parts
        self._k1, self._epsilon = k1, epsilon
        self._offsets = list(accumulate((len(part.postings.lengths) for part in parts), initial=0))
        lengths = np.concatenate([np.zeros(0), *(part.postings.lengths for part in parts)])
        alive = np.concatenate([np.zeros(0, bool), *(_alive(part) for part in parts)])
        self._living = int(alive.sum())
        total = float(lengths[alive].sum())
        # By document: what is added below the fraction. Of one that is gone nothing is left, whatever hits in it.
        self._damping = k1 * (1 - b + b * lengths / (total / self._living)) if total else np.ones(len(lengths))
        self._damping[~alive] = np.inf
        self._idfs: dict[str, float] = {}
        self._mean_idf: float | None = None

    @classmethod
    def of(cls, documents: Sequence[Mapping[str, int]]) -> "Bm25":
        """Make one of documents given as their words and how often each is in them."""
        vocabulary, (postings,) = build([documents])
        return cls([Part(vocabulary, postings)])

    def __len__(self) -> int:
        """Return how many documents are alive."""
        return self._living

    def scores(self, words: Iterable[str]) -> "Scores":
        """Return the score of every document, 0 for dead ones; a word said twice counts twice."""
        import numpy as np

        wanted = Counter(words)
        scores = np.zeros(len(self._damping))
        for hits in self._hits(wanted):
            factors = [wanted[word] * self._idf(word) * (self._k1 + 1) for word in hits.words]
            shares = hits.counts / (hits.counts + self._damping[hits.rows])
            shares *= np.repeat(factors, hits.sizes)
            scores += np.bincount(hits.rows, shares, minlength=len(scores))
        return scores

    def coverage(self, words: Iterable[str]) -> "Counts":
        """Return, for every document, how many different words of `words` it holds; 0 for dead ones."""
        import numpy as np

        held = np.zeros(len(self._damping), dtype=np.int_)
        for hits in self._hits(dict.fromkeys(words)):
            held += np.bincount(hits.rows, minlength=len(held))
        if self._living < len(held):
            held[np.isinf(self._damping)] = 0
        return held

    def explain(self, row: int, words: Iterable[str]) -> list[tuple[str, float]]:
        """Return the words of `words` that document `row` holds, with what each adds to its score, best first."""
        damping = float(self._damping[row])
        number = bisect_right(self._offsets, row) - 1
        part, local = self._parts[number], row - self._offsets[number]
        found = []
        for word, times in Counter(words).items():
            start, end = _span(part, word)
            rows = part.postings.rows[start:end]
            place = int(rows.searchsorted(local))
            if place < len(rows) and rows[place] == local and damping < float("inf"):
                count = int(part.postings.counts[start + place])
                found.append((word, times * self._idf(word) * (self._k1 + 1) * count / (count + damping)))
        return sorted(found, key=lambda word_and_share: (-word_and_share[1], word_and_share[0]))

    def holders(self, word: str) -> "Rows":
        """Return the living documents that hold the word, ascending."""
        import numpy as np

        rows = [hits.rows for hits in self._hits([word])]
        found: Rows = np.concatenate([np.zeros(0, np.intp), *rows])
        return found[np.isfinite(self._damping[found])]

    def _hits(self, words: Iterable[str]) -> Iterator[_Hits]:
        """Yield the postings of the words that are in any document, some words at a time."""
        import numpy as np

        some: list[str] = []
        sizes: list[int] = []
        rows: list[NDArray[np.int32]] = []
        counts: list[NDArray[np.generic]] = []

        def together() -> _Hits:
            return _Hits(
                tuple(some), np.concatenate(rows, dtype=np.intp), np.concatenate(counts, dtype=np.float64), tuple(sizes)
            )

        for word in words:
            size = 0
            for part, offset in zip(self._parts, self._offsets, strict=False):
                start, end = _span(part, word)
                if end > start:
                    found = part.postings.rows[start:end]
                    rows.append(found + np.int32(offset) if offset else found)
                    counts.append(part.postings.counts[start:end])
                    size += end - start
            if size:
                some.append(word)
                sizes.append(size)
            if sum(sizes) > _SCORED_AT_ONCE:
                yield together()
                for each in (some, sizes, rows, counts):
                    each.clear()
        if some:
            yield together()

    def _idf(self, word: str) -> float:
        """Return how telling the word is; one that is in over half of the documents gets a share of the mean."""
        idf = self._idfs.get(word)
        if idf is None:
            documents = sum(_spread(part, word) for part in self._parts)
            idf = float(_idf(self._living, documents)) if documents else 0.0
            if idf < 0:
                idf = self._epsilon * self._mean()
            if len(self._idfs) >= _MOST_REMEMBERED:
                self._idfs.clear()
            self._idfs[word] = idf
        return idf

    def _mean(self) -> float:
        import numpy as np

        if self._mean_idf is None:
            part = max(self._parts, key=lambda part: len(part.postings.rows))
            starts, living = part.postings.starts, len(part.postings.lengths)
            documents = np.diff(starts)
            if part.alive is not None and len(part.postings.rows) < _WORTH_COUNTING:
                documents, living = spread(part.postings, part.alive), int(part.alive.sum())
            # Many words are in as many documents as others: each number is looked at once.
            words = np.bincount(documents)[1:]
            numbers = np.flatnonzero(words) + 1
            self._mean_idf = float(_idf(living, numbers) @ words[numbers - 1] / max(words.sum(), 1))
        return self._mean_idf


def _idf(living: int, documents: "int | Rows") -> "Scores":
    import numpy as np

    idf: Scores = np.log(living - documents + 0.5) - np.log(np.add(documents, 0.5))
    return idf


def _span(part: Part, word: str) -> tuple[int, int]:
    """Return where the word's postings begin and end."""
    number = part.vocabulary.find(word)
    return (0, 0) if number < 0 else (int(part.postings.starts[number]), int(part.postings.starts[number + 1]))


def _spread(part: Part, word: str) -> int:
    """Return in how many living documents of the part the word is."""
    import numpy as np

    start, end = _span(part, word)
    return end - start if part.alive is None else int(np.count_nonzero(part.alive[part.postings.rows[start:end]]))


def _alive(part: Part) -> "Mask":
    import numpy as np

    return np.ones(len(part.postings.lengths), bool) if part.alive is None else part.alive
