"""BM25 over small collections: rebuilt for each change by rank-bm25, or indexed text by text.

BM25+ and not Okapi: Okapi gives a word in half of the texts an idf of 0, and collections of two texts are common.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.postings import build
from agent_workbench.ranking.postings_reader import IndexPart
from agent_workbench.ranking.tokens import count_stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


# All texts are indexed anew when the small part has more than this share of them, and more than this number.
_SMALL_SHARE, _SMALL = 8, 64
# Number of hits of which the words are told.
_MOST_HITS = 200


class RankedText(Struct, frozen=True):
    """A text by its `number` in the collection, its score, and the stems of the query it contains, best first."""

    number: int
    score: float
    stems: tuple[str, ...]


class SmallCollection:
    """Texts ranked for a query. Blocks: a hundred texts of 10 kB take half a second."""

    def __init__(self, texts: Sequence[str]) -> None:
        from rank_bm25 import BM25Plus

        counted = [count_stems(text) for text in texts]
        self._stems = [frozenset(counts) for counts in counted]
        # Without any word there is no average length to divide by.
        self._bm25 = BM25Plus([list(_repeated(counts)) for counts in counted]) if any(counted) else None

    def best(self, query: str, limit: int) -> list[RankedText]:
        """Return at most `limit` texts that contain a word of the query, best first, then in their order."""
        wanted = count_stems(query)
        if self._bm25 is None or not wanted:
            return []
        scores = self._bm25.get_scores(list(_repeated(wanted))).tolist()
        hits = [number for number, stems in enumerate(self._stems) if not stems.isdisjoint(wanted)]
        hits.sort(key=lambda number: -scores[number])
        return [RankedText(number, scores[number], self._matching(number, wanted)) for number in hits[:limit]]

    def _matching(self, number: int, wanted: dict[str, int]) -> tuple[str, ...]:
        idf = self._bm25.idf if self._bm25 is not None else {}
        return tuple(sorted(self._stems[number] & wanted.keys(), key=lambda stem: (-idf[stem], stem)))


def _repeated(counts: dict[str, int]) -> Iterator[str]:
    return (stem for stem, times in counts.items() for _ in range(times))


class TextHit(Struct, frozen=True):
    """A text that contains words of a query: its name, its score, and these words, best first."""

    name: str
    score: float
    words: tuple[str, ...]


class _Part(Struct):
    names: list[str]
    index: IndexPart
    alive: "Mask"


class ChangingCollection:
    """Texts by name, each given as the counts of its stems: a large part, and a small one of recent changes. Blocks."""

    def __init__(self) -> None:
        self._stems: dict[str, Mapping[str, int]] = {}
        self._large: _Part | None = None
        self._changed: set[str] = set()
        self._scorer: tuple[Bm25, list[str]] | None = None

    def update(self, changed: Mapping[str, Mapping[str, int]], removed: frozenset[str]) -> None:
        """Put texts in place of those with the same names, and remove others."""
        if not changed and not removed:
            return
        for name in removed:
            self._stems.pop(name, None)
        self._stems.update(changed)
        self._changed |= changed.keys() | removed
        self._scorer = None

    def search(self, query: str) -> list[TextHit]:
        """Return texts that contain a word of the query, best first and then by name."""
        stems = count_stems(query)
        if not stems or not self._stems:
            return []
        bm25, names = self._scored()
        scores = bm25.scores(stems)
        rows = scores.nonzero()[0].tolist()
        rows.sort(key=lambda row: (-scores[row], names[row]))
        rows, spelled = rows[:_MOST_HITS], _spelled(query)
        held = bm25.explain_all(rows, stems)
        return [
            TextHit(names[row], float(scores[row]), tuple(spelled.get(stem, stem) for stem, _ in shares))
            for row, shares in zip(rows, held, strict=True)
        ]

    def _scored(self) -> tuple[Bm25, list[str]]:
        """Return the scorer of all texts, and the name of each row."""
        if self._scorer is None:
            large = self._large
            if large is None or len(self._changed) > max(_SMALL, len(self._stems) // _SMALL_SHARE):
                large = self._large = self._part(list(self._stems))
                self._changed.clear()
            for row, name in enumerate(large.names if self._changed else ()):
                if name in self._changed:
                    large.alive[row] = False
            small = self._part([name for name in self._changed if name in self._stems])
            parts = [IndexPart(each.index.vocabulary, each.index.postings, each.alive) for each in (large, small)]
            self._scorer = Bm25(parts, positive=True), [*large.names, *small.names]
        return self._scorer

    def _part(self, names: list[str]) -> _Part:
        import numpy as np

        vocabulary, (postings,) = build([[self._stems[name] for name in names]])
        return _Part(names, IndexPart(vocabulary, postings), np.ones(len(names), bool))


def _spelled(query: str) -> dict[str, str]:
    """Return each stem with the first word of the query that has it."""
    spelled: dict[str, str] = {}
    for word in query.split():
        plain = word.strip(".,;:!?()[]{}\"'`").lower()
        for stem in count_stems(plain):
            spelled.setdefault(stem, plain if plain.isalnum() else stem)
    return spelled
