"""BM25 (Okapi) over documents of which some may be gone, as `rank_bm25.BM25Okapi` scores them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from agent_workbench.ranking.postings import Postings, build, counted, spread
from agent_workbench.ranking.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_workbench.ranking.postings import Counts

    Scores = NDArray[np.float64]
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
    counts: "Counts"
    sizes: Sequence[int]


class Bm25:
    """The scores of documents, numbered through all parts in their order; computed only where a word hits.

    They equal those of `BM25Okapi` over the living documents, with one exception. A word that is in more than half of
    the documents gets a share of the mean over all words, and that mean is taken over the largest part alone, and while
    that is large (300 000 postings), with its dead documents. So all is exact for one part without dead documents, as
    a build or merge makes it, and for small ones with them. Any thread may ask.
    """

    def __init__(self, parts: Sequence[Part], *, k1: float = K1, b: float = B, epsilon: float = EPSILON) -> None:
        import numpy as np

        self._parts = parts
        self._k1, self._epsilon = k1, epsilon
        self._offsets = list(accumulate((len(part.postings.lengths) for part in parts), initial=0))
        self._living, total = 0, 0
        for part in parts:
            lengths = part.postings.lengths if part.alive is None else part.postings.lengths[part.alive]
            self._living, total = self._living + len(lengths), total + int(lengths.sum())
        # By document: what is added below the fraction. Of one that is gone nothing is left, whatever hits in it.
        self._damping = np.concatenate([np.zeros(0), *(part.postings.lengths for part in parts)], dtype=np.float64)
        self._damping *= k1 * b * self._living / max(total, 1)
        self._damping += k1 * (1 - b)
        for part, start, end in zip(parts, self._offsets, self._offsets[1:], strict=False):
            if part.alive is not None:
                self._damping[start:end][~part.alive] = np.inf
        self._idfs: dict[str, float] = {}
        self._mean_idf: float | None = None
        # Who asks for scores mostly asks for the same words' coverage next, and why a few documents have theirs.
        self._recent: tuple[tuple[str, ...], _Hits] | None = None
        self._recent_spans: tuple[tuple[str, ...], Sequence[tuple[str, Sequence[_Span]]]] | None = None

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
        scores: Scores | None = None
        for hits in self._hits(tuple(wanted)):
            shares = self._damping.take(hits.rows)
            idfs = self._idfs_of(hits, shares)
            shares += hits.counts
            np.divide(hits.counts, shares, out=shares)
            times = np.fromiter((wanted[word] for word in hits.words), np.float64, len(idfs))
            shares *= np.repeat(idfs * times * (self._k1 + 1), hits.sizes)
            some = np.bincount(hits.rows, shares, minlength=len(self._damping)).astype(np.float64, copy=False)
            scores = some if scores is None else np.add(scores, some, out=scores)
        return np.zeros(len(self._damping)) if scores is None else scores

    def coverage(self, words: Iterable[str]) -> "Rows":
        """Return, for every document, how many different words of `words` it holds; 0 for dead ones."""
        import numpy as np

        held: Rows | None = None
        for hits in self._hits(tuple(dict.fromkeys(words))):
            each: Rows = np.bincount(hits.rows, minlength=len(self._damping))
            held = each if held is None else held + each
        if held is None:
            return np.zeros(len(self._damping), np.intp)
        if self._living < len(held):
            held[np.isinf(self._damping)] = 0
        return held

    def explain(self, row: int, words: Iterable[str]) -> list[tuple[str, float]]:
        """Return the words of `words` that document `row` holds, with what each adds to its score, best first."""
        import numpy as np

        damping, wanted = float(self._damping[row]), Counter(words)
        found = []
        for word, spans in self._found(tuple(wanted)) if damping < float("inf") else ():
            for span in spans:
                # Of another type it would make one of all rows to look through them.
                local = np.int32(row - span.offset)
                place = int(span.rows.searchsorted(local))
                if place < len(span.rows) and span.rows[place] == local:
                    count = int(span.counts[place])
                    found.append((word, wanted[word] * self._idf(word) * (self._k1 + 1) * count / (count + damping)))
        return sorted(found, key=lambda word_and_share: (-word_and_share[1], word_and_share[0]))

    def holders(self, word: str) -> "Rows":
        """Return the living documents that hold the word, ascending."""
        import numpy as np

        for hits in self._hits((word,)):
            return hits.rows[np.isfinite(self._damping[hits.rows])]
        return np.zeros(0, np.intp)

    def _hits(self, words: tuple[str, ...]) -> Iterator[_Hits]:
        """Yield the postings of the words that are in any document, some words at a time."""
        recent = self._recent
        if recent is not None and recent[0] == words:
            yield recent[1]
            return
        spans: list[_Span] = []
        some: dict[str, int] = {}
        total, yielded = 0, 0
        for word, found in self._found(words):
            spans += found
            some[word] = sum([len(span.rows) for span in found])
            total += some[word]
            if total > _SCORED_AT_ONCE:
                yield _together(some, spans)
                spans, some, total, yielded = [], {}, 0, yielded + 1
        if some:
            hits = _together(some, spans)
            if not yielded:
                self._recent = (words, hits)
            yield hits

    def _found(self, words: tuple[str, ...]) -> "Sequence[tuple[str, Sequence[_Span]]]":
        """Return those of the words that are in any document, with where their postings stand."""
        recent = self._recent_spans
        if recent is not None and recent[0] == words:
            return recent[1]
        found = []
        for word in words:
            spans = []
            for part, offset in zip(self._parts, self._offsets, strict=False):
                number = part.vocabulary.find(word)
                if number >= 0:
                    start, end = part.postings.starts[number : number + 2].tolist()
                    if start < end:
                        spans.append(_Span(offset, part.postings.rows[start:end], part.postings.counts[start:end]))
            if spans:
                found.append((word, spans))
        self._recent_spans = words, found
        return found

    def _idfs_of(self, hits: _Hits, damping: "Scores") -> "Scores":
        """Return by word of the hits how telling it is; `damping` is that of their rows."""
        import numpy as np

        documents = np.array(hits.sizes)
        if self._living < len(self._damping):
            starts = np.cumsum(documents) - documents
            documents = np.add.reduceat(np.isfinite(damping), starts, dtype=np.intp)
        idfs = _idf(self._living, documents)
        # A word that is left in no document at all tells nothing, and hits nothing.
        if (idfs < 0).any():
            idfs[idfs < 0] = self._epsilon * self._mean()
        if len(self._idfs) > _MOST_REMEMBERED:
            self._idfs = {}
        self._idfs.update(zip(hits.words, idfs.tolist(), strict=True))
        return idfs

    def _idf(self, word: str) -> float:
        """Return how telling the word is; one that is in over half of the documents gets a share of the mean."""
        idf = self._idfs.get(word)
        if idf is None:
            for hits in self._hits((word,)):
                idf = float(self._idfs_of(hits, self._damping[hits.rows])[0])
        return idf or 0.0

    def _mean(self) -> float:
        if self._mean_idf is None:
            part = max(self._parts, key=lambda part: len(part.postings.rows))
            self._mean_idf = _mean_idf(part.postings, part.alive)
        return self._mean_idf


class _Span(NamedTuple):
    """A word's postings in a part, whose documents are numbered from `offset`."""

    offset: int
    rows: "NDArray[np.int32]"
    counts: "Counts"


def _together(sizes: Mapping[str, int], spans: Sequence[_Span]) -> _Hits:
    import numpy as np

    rows = np.concatenate([span.rows + span.offset if span.offset else span.rows for span in spans], dtype=np.intp)
    counts = np.concatenate([span.counts for span in spans])
    return _Hits(tuple(sizes), rows, counts, tuple(sizes.values()))


def _idf(living: int, documents: "Rows") -> "Scores":
    import numpy as np

    idfs: Scores = np.log(living - documents + 0.5) - np.log(documents + 0.5)
    return idfs


def _mean_idf(postings: Postings, alive: "Mask | None") -> float:
    """Return the mean over all words that are in any document."""
    living, (numbers, words) = len(postings.lengths), postings.spreads
    if alive is not None and len(postings.rows) < _WORTH_COUNTING:
        living, (numbers, words) = int(alive.sum()), counted(spread(postings, alive))
    return float(_idf(living, numbers) @ words / max(words.sum(), 1))
