"""What is asked of postings, and what those of some words say: each posting's part of a document's number."""

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


class Measure(Enum):
    """What is asked of documents: their score, how telling the words are that they hold, or how many these are."""

    SCORE = auto()
    RARITY = auto()
    COVERAGE = auto()


class Ask(Struct, frozen=True):
    """What is to be known of all documents for these words; one said twice counts twice, but in coverage."""

    words: Sequence[str]
    measure: Measure = Measure.SCORE


class Hits(Struct, frozen=True):
    """Postings of some words: their documents, how often the word is there, and by word how many there are.

    `numbers` are the words' places among those that were looked for.
    """

    words: Sequence[str]
    numbers: Sequence[int]
    rows: "Rows"
    counts: "Counts"
    sizes: Sequence[int]

    def first(self, words: int) -> "Hits":
        """Return those of the first `words` alone."""
        if words == len(self.words):
            return self
        end = sum(self.sizes[:words])
        return Hits(self.words[:words], self.numbers[:words], self.rows[:end], self.counts[:end], self.sizes[:words])


class Weights(Struct, frozen=True):
    """What hits say: each posting's share of a score, and by word how telling it is."""

    shares: "Scores"
    idfs: "Scores"


def amounts(measure: Measure, times: "Scores", hits: Hits, weights: Weights | None) -> "Scores | None":
    """Return by posting of the hits what it adds, None where each adds one; `times` is by word."""
    import numpy as np

    if measure == Measure.COVERAGE or weights is None:
        return None if times.all() else np.repeat((times > 0).astype(np.float64), hits.sizes)
    if measure == Measure.RARITY:
        return np.repeat(weights.idfs[: len(times)] * times, hits.sizes)
    shares = weights.shares[: len(hits.rows)]
    return shares if (times == 1).all() else shares * np.repeat(times, hits.sizes)
