"""BM25 (Okapi) over the segments of a large index, some of whose documents are deleted.

`rank_bm25.BM25Okapi` cannot serve here: it keeps a dict for each document, scores every document for every word, and
has to be rebuilt when one document changes. Its scores are the reference; a test compares them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from agent_workbench.ranking.postings import Postings, build, frequency_histogram, live_frequencies
from agent_workbench.ranking.postings_reader import (
    Hits,
    IndexPart,
    PostingsReader,
    PostingWeights,
    ScoreKind,
    ScoreRequest,
    contributions,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Rows = NDArray[np.intp]
    Mask = NDArray[np.bool_]

K1, B, EPSILON = 1.5, 0.75, 0.25
# Below this number of postings, words are counted again after a deletion.
_WORTH_COUNTING = 300_000
_MAX_CACHED = 4_096


class Bm25:
    """BM25 scores of documents, which are numbered through all parts in order.

    The scores equal those of `BM25Okapi` over the live documents, with one exception. A word in more than half of the
    documents gets a share of the mean idf. That mean is taken over the largest part; from 300,000 postings on it
    includes deleted documents. The scores of a single part without deleted documents are exact. Thread-safe.

    `positive`: the idf is that of `BM25Plus`, which is above 0 for every word. Collections of two texts need it: the
    idf of Okapi is 0 for a word in half of the documents.
    """

    def __init__(
        self,
        parts: Sequence[IndexPart],
        *,
        k1: float = K1,
        b: float = B,
        epsilon: float = EPSILON,
        positive: bool = False,
    ) -> None:
        import numpy as np

        self._parts = parts
        self._positive = positive
        self._k1, self._epsilon = k1, epsilon
        self._reader = PostingsReader(parts)
        self._living, total = 0, 0
        for part in parts:
            lengths = part.postings.lengths if part.alive is None else part.postings.lengths[part.alive]
            self._living, total = self._living + len(lengths), total + int(lengths.sum())
        # By document: the term added to the denominator; infinite for deleted documents, so that their score is 0.
        self._damping = np.concatenate([np.zeros(0), *(part.postings.lengths for part in parts)], dtype=np.float64)
        self._damping *= k1 * b * self._living / max(total, 1)
        self._damping += k1 * (1 - b)
        for part, start, end in zip(parts, self._reader.offsets, self._reader.offsets[1:], strict=False):
            if part.alive is not None:
                self._damping[start:end][~part.alive] = np.inf
        self._idfs: dict[str, float] = {}
        self._mean_idf: float | None = None

    @classmethod
    def of(cls, documents: Sequence[Mapping[str, int]]) -> "Bm25":
        """Return the scores of documents, each given as its words and their counts."""
        vocabulary, (postings,) = build([documents])
        return cls([IndexPart(vocabulary, postings)])

    def __len__(self) -> int:
        """Return the number of live documents."""
        return self._living

    def scores(self, words: Iterable[str]) -> "Scores":
        """Return the score of every document, 0 for deleted ones; a repeated word counts each time."""
        return self.compute(ScoreRequest(tuple(words)))[0]

    def coverage(self, words: Iterable[str]) -> "Scores":
        """Return for every document the number of distinct `words` it contains, 0 for deleted ones."""
        return self.compute(ScoreRequest(tuple(words), ScoreKind.COVERAGE))[0]

    def compute(self, *asks: ScoreRequest) -> "list[Scores]":
        """Return for each request a number for every document, 0 for deleted ones.

        Words of several requests are read once.
        """
        import numpy as np

        wanted = [Counter(ask.words) for ask in asks]
        # Words of most requests come first, so that the words of one request are nearly always a prefix.
        askers = Counter(chain.from_iterable(wanted))
        words = tuple(sorted(askers, key=askers.__getitem__, reverse=True))
        times = np.array([[each.get(word, 0) for word in words] for each in wanted], np.float64)
        sums: list[Scores | Rows | None] = [None] * len(asks)
        for hits in self._reader.hits(words):
            here = times[:, hits.numbers]
            reach = [int(each.nonzero()[0].max(initial=-1)) + 1 for each in here]
            scored = max(
                (upto for ask, upto in zip(asks, reach, strict=True) if ask.measure != ScoreKind.COVERAGE), default=0
            )
            weights = self._weights(hits.first(scored)) if scored else None
            for number, upto in enumerate(reach):
                if upto:
                    some = hits.first(upto)
                    each = contributions(asks[number].measure, here[number, :upto], some, weights)
                    found = np.bincount(some.rows, each, minlength=len(self._damping))
                    sums[number] = found if (before := sums[number]) is None else before + found
        return [self._without_deleted(ask.measure, found) for ask, found in zip(asks, sums, strict=True)]

    def explain(self, row: int, words: Iterable[str]) -> list[tuple[str, float]]:
        """Return those of `words` that document `row` contains, each with its share of the score, largest first."""
        return self.explain_all([row], words)[0]

    def explain_all(self, rows: Sequence[int], words: Iterable[str]) -> list[list[tuple[str, float]]]:
        """Return the result of `explain` for each of these distinct documents."""
        import numpy as np

        wanted = Counter(words)
        found: dict[int, list[tuple[str, float]]] = {row: [] for row in rows}
        shown = np.zeros(len(self._damping), bool)
        shown[list(found)] = True
        for hits in self._reader.hits(self._reader.including(wanted)) if rows else ():
            places = shown[hits.rows].nonzero()[0]
            held, counts = hits.rows[places], hits.counts[places]
            damping = self._damping[held]
            numbers = np.searchsorted(np.cumsum(hits.sizes), places, side="right")
            said = [wanted.get(word, 0) * self._idf(word) * (self._k1 + 1) for word in hits.words]
            shares = np.array(said)[numbers] * counts / (counts + damping)
            for row, number, share, lives in zip(
                held.tolist(), numbers.tolist(), shares.tolist(), np.isfinite(damping).tolist(), strict=True
            ):
                if lives and hits.words[number] in wanted:
                    found[row].append((hits.words[number], share))
        return [sorted(found[row], key=lambda word_and_share: (-word_and_share[1], word_and_share[0])) for row in rows]

    def holders(self, word: str) -> "Rows":
        """Return the live documents that contain the word, ascending."""
        import numpy as np

        for hits in self._reader.hits((word,)):
            return hits.rows[np.isfinite(self._damping[hits.rows])]
        return np.zeros(0, np.intp)

    def _weights(self, hits: Hits) -> PostingWeights:
        """Return the contribution of each posting, and the idf of each word."""
        import numpy as np

        shares = self._damping.take(hits.rows)
        idfs = self._idfs_of(hits, shares)
        shares += hits.counts
        np.divide(hits.counts, shares, out=shares)
        shares *= np.repeat(idfs * (self._k1 + 1), hits.sizes)
        return PostingWeights(shares, idfs)

    def _without_deleted(self, measure: ScoreKind, found: "Scores | Rows | None") -> "Scores":
        """Return sums as the result of a request: 0 for deleted documents."""
        import numpy as np

        if found is None:
            return np.zeros(len(self._damping))
        settled: Scores = found.astype(np.float64, copy=False)
        if measure != ScoreKind.SCORE and self._living < len(settled):
            settled[np.isinf(self._damping)] = 0
        return settled

    def _idfs_of(self, hits: Hits, damping: "Scores") -> "Scores":
        """Return the idf of each word of the hits; `damping` is that of their rows."""
        import numpy as np

        documents = np.array(hits.sizes)
        if self._living < len(self._damping):
            starts = np.cumsum(documents) - documents
            documents = np.add.reduceat(np.isfinite(damping), starts, dtype=np.intp)
        idfs = _positive_idf(self._living, documents) if self._positive else _idf(self._living, documents)
        # A word of deleted documents only has a negative idf too, and no postings that count.
        if (idfs < 0).any():
            idfs[idfs < 0] = self._epsilon * self._mean()
        if len(self._idfs) > _MAX_CACHED:
            self._idfs = {}
        self._idfs.update(zip(hits.words, idfs.tolist(), strict=True))
        return idfs

    def _idf(self, word: str) -> float:
        """Return the idf of a word; a word in more than half of the documents gets a share of the mean."""
        idf = self._idfs.get(word)
        if idf is None:
            for hits in self._reader.hits((word,)):
                idf = float(self._idfs_of(hits, self._damping[hits.rows])[0])
        return idf or 0.0

    def _mean(self) -> float:
        if self._mean_idf is None:
            part = max(self._parts, key=lambda part: len(part.postings.rows))
            self._mean_idf = _mean_idf(part.postings, part.alive)
        return self._mean_idf


def _idf(living: int, documents: "Rows") -> "Scores":
    import numpy as np

    idfs: Scores = np.log(living - documents + 0.5) - np.log(documents + 0.5)
    return idfs


def _positive_idf(living: int, documents: "Rows") -> "Scores":
    import numpy as np

    idfs: Scores = np.log((living + 1) / np.maximum(documents, 1))
    return idfs


def _mean_idf(postings: Postings, alive: "Mask | None") -> float:
    """Return the mean idf of all words that occur in a document."""
    living, (numbers, words) = len(postings.lengths), postings.document_frequencies
    if alive is not None and len(postings.rows) < _WORTH_COUNTING:
        living, (numbers, words) = int(alive.sum()), frequency_histogram(live_frequencies(postings, alive))
    return float(_idf(living, numbers) @ words / max(words.sum(), 1))
