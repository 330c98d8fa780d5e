"""Values that scorers exchange with an inverted index: score requests, and the matching postings (hits)."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_workbench.ranking.postings import Counts

    Scores = NDArray[np.float64]
    Rows = NDArray[np.intp]


class ScoreKind(Enum):
    """Kind of number computed for each document: BM25 score, sum of idfs, or number of distinct words."""

    SCORE = auto()
    RARITY = auto()
    COVERAGE = auto()


class ScoreRequest(Struct, frozen=True):
    """Request for one number per document. A repeated word counts each time, except for coverage."""

    words: Sequence[str]
    measure: ScoreKind = ScoreKind.SCORE


class Hits(Struct, frozen=True):
    """Postings of some words: document, count in the document, and for each word the number of its postings.

    `numbers` are the positions of the words in the query.
    """

    words: Sequence[str]
    numbers: Sequence[int]
    rows: "Rows"
    counts: "Counts"
    sizes: Sequence[int]

    def first(self, words: int) -> "Hits":
        """Return the postings of the first `words` words."""
        if words == len(self.words):
            return self
        end = sum(self.sizes[:words])
        return Hits(self.words[:words], self.numbers[:words], self.rows[:end], self.counts[:end], self.sizes[:words])


class PostingWeights(Struct, frozen=True):
    """Contribution of each posting to the score of its document, and the idf of each word."""

    shares: "Scores"
    idfs: "Scores"


def contributions(measure: ScoreKind, times: "Scores", hits: Hits, weights: PostingWeights | None) -> "Scores | None":
    """Return the amount that each posting adds, None for 1 each; `times` is the weight of each word."""
    import numpy as np

    if measure == ScoreKind.COVERAGE or weights is None:
        return None if times.all() else np.repeat((times > 0).astype(np.float64), hits.sizes)
    if measure == ScoreKind.RARITY:
        return np.repeat(weights.idfs[: len(times)] * times, hits.sizes)
    shares = weights.shares[: len(hits.rows)]
    return shares if (times == 1).all() else shares * np.repeat(times, hits.sizes)
