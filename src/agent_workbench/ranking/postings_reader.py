"""Reading the postings of words from parts that number their documents one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.ranking.hits import Hits
from agent_workbench.ranking.postings import Postings
from agent_workbench.ranking.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]
    Mask = NDArray[np.bool_]

# So many postings are handed out at a time: they stay within the processor's own memory.
_READ_AT_ONCE = 200_000


class Part(Struct, frozen=True):
    """Some of the documents: their words, where these are, and which documents are alive (None: all)."""

    vocabulary: Vocabulary
    postings: Postings
    alive: "Mask | None" = None


class Reader:
    """The postings of all parts as if they were one. Any thread may ask."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.offsets = list(accumulate((len(part.postings.lengths) for part in parts), initial=0))
        # Who asks for scores mostly asks for the same words' coverage next, and why a few documents have theirs.
        self._recent: tuple[tuple[str, ...], Hits] | None = None

    def including(self, words: Mapping[str, int]) -> tuple[str, ...]:
        """Return the words that were read last where these are among them."""
        recent = self._recent
        return recent[0] if recent is not None and words.keys() <= set(recent[0]) else tuple(words)

    def hits(self, words: tuple[str, ...]) -> Iterator[Hits]:
        """Yield the postings of the words that are in any document, some words at a time."""
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
        """Return by part and word where its postings begin and end."""
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
    """Yield the words in groups that have few postings together, or little more."""
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
