"""The files that get vectors, and the words that are in them."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_workbench.adapters.retrieval.index.view import IndexView

    Numbers = NDArray[np.int64]
    Counts = NDArray[np.int32]


class Corpus(Struct, frozen=True):
    """Files by number from 0: `paths`, and beside them `blobs`, the names of their contents.

    The words stand by column: `words[i]` is in the files `rows[starts[i]:starts[i + 1]]`, as often as `counts` says at
    the same places. A file stands at most once in a word's rows.
    """

    paths: Sequence[str]
    blobs: Sequence[str]
    words: Sequence[str]
    starts: "Numbers"
    rows: "Counts"
    counts: "Counts"

    def of_files(self, files: Collection[int]) -> "Corpus":
        """Return the corpus of these files alone, numbered anew in their order, with the words that are in them."""
        import numpy as np

        chosen = np.fromiter(files, dtype=np.int64, count=len(files))
        numbers = np.full(len(self.paths), -1, dtype=np.int32)
        numbers[chosen] = np.arange(len(chosen), dtype=np.int32)
        rows = numbers[self.rows]
        kept = rows >= 0
        spread = _sums(kept, self.starts)
        held = np.flatnonzero(spread)
        return Corpus(
            [self.paths[each] for each in files],
            [self.blobs[each] for each in files],
            [self.words[each] for each in held.tolist()],
            starts_of(spread[held]),
            rows[kept],
            self.counts[kept],
        )

    def of_words(self, columns: "Numbers") -> "Corpus":
        """Return the corpus with these words alone, given by their numbers."""
        import numpy as np

        sizes = np.diff(self.starts)[columns]
        places = np.repeat(self.starts[columns] - starts_of(sizes)[:-1], sizes) + np.arange(int(sizes.sum()))
        words = [self.words[each] for each in columns.tolist()]
        return Corpus(self.paths, self.blobs, words, starts_of(sizes), self.rows[places], self.counts[places])


def corpus_of(view: "IndexView") -> Corpus:
    """Return the living files of an index and their words; blocks for moments."""
    import numpy as np

    paths, blobs, matrix = list(view.paths()), list(view.blobs()), view.matrix()
    held = [number for path in paths if (number := view.number_of(path)) is not None]
    if len(held) != len(paths) or len(blobs) != len(paths):
        raise ValueError("an index without numbers for its paths")
    numbers = np.zeros(max(held, default=0) + 1, dtype=np.int32)
    numbers[held] = np.arange(len(held), dtype=np.int32)
    starts, counts = matrix.starts.astype(np.int64), matrix.counts.astype(np.int32)
    return Corpus(paths, blobs, list(matrix.words), starts, numbers[matrix.files], counts)


def starts_of(sizes: "Numbers") -> "Numbers":
    """Return where each of some runs of these lengths begins, and at the end where the last one ends."""
    import numpy as np

    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _sums(flags: "NDArray[np.bool_]", starts: "Numbers") -> "Numbers":
    import numpy as np

    before = np.concatenate(([0], np.cumsum(flags)))
    return before[starts[1:]] - before[starts[:-1]]
