"""Reader of the postings of words from several parts, and the requests and hits that it exchanges with scorers."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.ranking.postings import Postings
from agent_workbench.ranking.vocabulary import IndexVocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_workbench.ranking.postings import Counts

    Rows = NDArray[np.intp]
    Mask = NDArray[np.bool_]
    Scores = NDArray[np.float64]


# Postings are read in blocks that fit into the processor's cache.
_READ_AT_ONCE = 200_000


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


class IndexPart(Struct, frozen=True):
    """Part of an index: vocabulary, postings, and the mask of live documents (None: all)."""

    vocabulary: IndexVocabulary
    postings: Postings
    alive: "Mask | None" = None


class PostingsReader:
    """Reads the postings of all parts as if they were one. Thread-safe."""

    def __init__(self, parts: Sequence[IndexPart]) -> None:
        self._parts = parts
        self.offsets = list(accumulate((len(part.postings.lengths) for part in parts), initial=0))
        # A request for scores is mostly followed by one for the same words: their coverage, then explanations.
        self._recent: tuple[tuple[str, ...], Hits] | None = None

    def including(self, words: Mapping[str, int]) -> tuple[str, ...]:
        """Return the words that were read last if they include `words`, else `words`."""
        recent = self._recent
        return recent[0] if recent is not None and words.keys() <= set(recent[0]) else tuple(words)

    def hits(self, words: tuple[str, ...]) -> Iterator[Hits]:
        """Yield the postings of the words that occur, some words at a time."""
        import numpy as np

        recent = self._recent
        if recent is not None and recent[0] == words:
            yield recent[1]
            return
        starts, ends = self._places(words)
        sizes = (ends - starts).sum(axis=0).tolist()
        held = [number for number, size in enumerate(sizes) if size]
        for some in _groups(held, sizes):
            spans = [
                (part, offset, start, end)
                for number in some
                for part, offset, start, end in zip(
                    self._parts, self.offsets, starts[:, number].tolist(), ends[:, number].tolist(), strict=False
                )
                if start < end
            ]
            rows = [
                part.postings.rows[start:end] + offset if offset else part.postings.rows[start:end]
                for part, offset, start, end in spans
            ]
            hits = Hits(
                tuple(words[number] for number in some),
                some,
                np.concatenate(rows, dtype=np.intp),
                np.concatenate([part.postings.counts[start:end] for part, _, start, end in spans]),
                [sizes[number] for number in some],
            )
            if len(some) == len(held):
                self._recent = (words, hits)
            yield hits

    def _places(self, words: tuple[str, ...]) -> "tuple[Rows, Rows]":
        """Return begin and end of the postings of each word in each part."""
        import numpy as np

        starts = np.zeros((len(self._parts), len(words)), np.intp)
        ends = starts.copy()
        for place, part in enumerate(self._parts):
            numbers = part.vocabulary.find_all(words)
            known = numbers >= 0
            starts[place, known] = part.postings.starts[numbers[known]]
            ends[place, known] = part.postings.starts[numbers[known] + 1]
        return starts, ends


def _groups(words: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the words in groups with about as many postings as are read at a time."""
    some: list[int] = []
    total = 0
    for number in words:
        some.append(number)
        total += sizes[number]
        if total > _READ_AT_ONCE:
            yield some
            some, total = [], 0
    if some:
        yield some
