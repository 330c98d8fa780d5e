"""Postings (word, document, count) as immutable numpy arrays: built, merged and read without Python loops."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.ranking.vocabulary import IndexVocabulary, union

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Counts = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.int32]
    Mask = NDArray[np.bool_]
    Numbers = NDArray[np.intp]

# Postings are copied in blocks, so that temporary arrays stay small beside the index.
_MOVED_AT_ONCE = 500_000


class Postings(Struct, frozen=True, dict=True):
    """The documents of word `w` are `rows[starts[w]:starts[w + 1]]`, ascending; `counts` at the same positions.

    `lengths` is the number of words of each document.
    """

    starts: "Ints"
    rows: "Ints"
    counts: "Counts"
    lengths: "Ints"

    @cached_property
    def document_frequencies(self) -> "tuple[Numbers, Numbers]":
        """Histogram of the document frequencies of all words."""
        import numpy as np

        return frequency_histogram(np.diff(self.starts))


class MergeInput(Struct, frozen=True):
    """One index in a merge: its words, its fields, and for each field the new number of each document (-1: dropped)."""

    vocabulary: IndexVocabulary
    fields: "Sequence[Postings]"
    rows: "Sequence[Ints]"


def build(fields: Sequence[Sequence[Mapping[str, int]]]) -> tuple[IndexVocabulary, list[Postings]]:
    """Return the vocabulary of all fields and the postings of each field, given as word counts of its documents."""
    words = sorted(set(chain.from_iterable(chain.from_iterable(fields))))
    number_of = {word: number for number, word in enumerate(words)}
    vocabulary = IndexVocabulary.of([word.encode("utf-8", "surrogatepass") for word in words])
    return vocabulary, [_of_documents(documents, number_of) for documents in fields]


def merge(shares: Sequence[MergeInput], sizes: Sequence[int]) -> tuple[IndexVocabulary, list[Postings]]:
    """Return several indexes merged into one; `sizes` is the number of its documents for each field.

    Words that no remaining document contains are left out.
    """
    import numpy as np

    living = [
        [_remaining_frequencies(field, rows) for field, rows in zip(share.fields, share.rows, strict=True)]
        for share in shares
    ]
    used = [np.logical_or.reduce([each > 0 for each in counts]) for counts in living]
    vocabulary, maps = union([share.vocabulary for share in shares], used)
    merged = []
    for number, size in enumerate(sizes):
        steps = [
            _MergeStep(share.fields[number], share.rows[number], words, counts[number])
            for share, words, counts in zip(shares, maps, living, strict=True)
        ]
        merged.append(_merged(steps, len(vocabulary), size))
    return vocabulary, merged


def grouped(postings: Postings, group_of: "Ints", groups: int) -> Postings:
    """Return the postings of groups of consecutive documents; `group_of` is the group of each document, ascending."""
    import numpy as np

    words = np.repeat(np.arange(len(postings.starts) - 1, dtype=np.int32), np.diff(postings.starts))
    group = group_of[postings.rows]
    begins = np.ones(len(words), bool)
    begins[1:] = (words[1:] != words[:-1]) | (group[1:] != group[:-1])
    places = np.flatnonzero(begins)
    counts = np.add.reduceat(postings.counts, places, dtype=np.int32) if len(places) else np.zeros(0, np.int32)
    starts = np.zeros_like(postings.starts)
    np.cumsum(np.bincount(words[places], minlength=len(starts) - 1), out=starts[1:])
    lengths = np.bincount(group_of, postings.lengths, minlength=groups).astype(np.int32)
    return Postings(starts, group[places], narrowed(counts), lengths)


def narrowed(counts: "Ints") -> "Counts":
    """Return the counts in the smallest integer type that holds them."""
    import numpy as np

    most = int(counts.max(initial=0))
    if most <= np.iinfo(np.uint8).max:
        return counts.astype(np.uint8)
    return counts.astype(np.uint16) if most <= np.iinfo(np.uint16).max else counts


def frequency_histogram(documents: "Ints") -> "tuple[Numbers, Numbers]":
    """Return the distinct numbers above 0, and for each how many words have it."""
    import numpy as np

    words = np.bincount(documents, minlength=1)
    numbers = np.flatnonzero(words[1:]) + 1
    return numbers, words[numbers]


def inverted(sizes: "Ints", words: "Ints", counts: "Ints", vocabulary: int) -> Postings:
    """Return the postings of documents; document `n` has the next `sizes[n]` entries of words and counts.

    Words are numbers below `vocabulary`, each at most once in a document.
    """
    import numpy as np

    order = np.argsort(words, kind="stable")
    starts = np.zeros(vocabulary + 1, np.int32)
    np.cumsum(np.bincount(words, minlength=vocabulary), out=starts[1:])
    rows = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    lengths = np.bincount(rows, counts, minlength=len(sizes)).astype(np.int32)
    return Postings(starts, rows[order], narrowed(counts[order]), lengths)


def _of_documents(documents: Sequence[Mapping[str, int]], number_of: Mapping[str, int]) -> Postings:
    import numpy as np

    sizes = np.fromiter(map(len, documents), np.int32, len(documents))
    total = int(sizes.sum())
    words = np.fromiter(map(number_of.__getitem__, chain.from_iterable(documents)), np.int32, total)
    counts = np.fromiter(chain.from_iterable(each.values() for each in documents), np.int32, total)
    return inverted(sizes, words, counts, len(number_of))


class _MergeStep(Struct, frozen=True):
    """One field of one index in a merge: new numbers of documents and words, and postings by word."""

    postings: Postings
    rows: "Ints"
    words: "Ints"
    counts: "Ints"


def _merged(steps: Sequence[_MergeStep], words: int, documents: int) -> Postings:
    import numpy as np

    starts = np.zeros(words + 1, np.int32)
    lengths = np.zeros(documents, np.int32)
    for step in steps:
        starts[1:][step.words[step.words >= 0]] += step.counts[step.words >= 0]
        lengths[step.rows[step.rows >= 0]] = step.postings.lengths[step.rows >= 0]
    np.cumsum(starts, out=starts)
    rows = np.empty(int(starts[-1]), np.int32)
    widest = np.result_type(*(step.postings.counts.dtype for step in steps))
    counts = np.empty(len(rows), widest)
    free = starts[:-1].copy()  # position of the next posting of each word
    for step in steps:
        for first, last in _blocks(step.postings.starts):
            _copy_block(step, first, last, free, rows, counts)
    return Postings(starts, rows, counts, lengths)


def _copy_block(step: _MergeStep, first: int, last: int, free: "Ints", rows: "Ints", counts: "Counts") -> None:
    """Copy the postings of the words `first` to `last` (exclusive) into the merged arrays."""
    import numpy as np

    postings, many = step.postings, step.counts[first:last]
    start, end = int(postings.starts[first]), int(postings.starts[last])
    fresh = step.rows[postings.rows[start:end]]
    held = postings.counts[start:end]
    if int(many.sum()) < len(fresh):
        held, fresh = held[fresh >= 0], fresh[fresh >= 0]
    used = many > 0
    words, many = step.words[first:last][used], many[used]
    before = np.cumsum(many, dtype=np.int32) - many
    places = np.repeat(free[words] - before, many)
    places += np.arange(len(places), dtype=np.int32)
    rows[places] = fresh
    counts[places] = held
    free[words] += many


def _blocks(starts: "Ints") -> Iterator[tuple[int, int]]:
    """Yield ranges of words whose postings together stay within the bound; a single word may exceed it."""
    import numpy as np

    first, words = 0, len(starts) - 1
    while first < words:
        last = int(np.searchsorted(starts, starts[first] + _MOVED_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), words)
        yield first, last
        first = last


def _remaining_frequencies(postings: Postings, rows: "Ints") -> "Ints":
    """Return for each word the number of remaining documents that contain it."""
    import numpy as np

    if (rows >= 0).all():
        return np.diff(postings.starts)
    return live_frequencies(postings, rows >= 0)


def live_frequencies(postings: Postings, alive: "Mask") -> "Ints":
    """Return for each word the number of live documents that contain it."""
    import numpy as np

    before = np.zeros(len(postings.rows) + 1, np.int32)
    np.cumsum(alive[postings.rows], out=before[1:])
    found: Ints = np.diff(before[postings.starts])
    return found
