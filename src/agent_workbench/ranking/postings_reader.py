"""Reader of the postings of words from several parts whose documents are numbered consecutively."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.ranking.hits import Hits
from agent_workbench.ranking.postings import Postings
from agent_workbench.ranking.vocabulary import IndexVocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]
    Mask = NDArray[np.bool_]

# Postings are read in blocks that fit into the processor's cache.
_READ_AT_ONCE = 200_000


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
