"""Latent semantic analysis learnt from the files themselves: words that keep the same company point the same way.

The singular vectors are found by the randomised method of Halko, Martinsson and Tropp (2011), with a fixed seed.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.vectors.corpus import Corpus, starts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# On commits of nine public repositories 64 to 256 found the files equally well.
DIMENSIONS = 128
# More files teach little more and cost time: that many, chosen by chance, stand for all.
MOST_TAUGHT_FILES = 20_000
# Of the words those in most files are kept; who is in fewer keeps little company.
MOST_WORDS = 20_000
FEWEST_FILES = 8
# A word in more than this share of the files says nothing of any.
_EVERYWHERE = 0.5
_SPARE_DIRECTIONS = 12
_ROUNDS = 1
# Little enough for a processor's cache, and for another thread to get its turn.
_FLOATS_AT_ONCE = 1_000_000


class Projection(Struct, frozen=True, dict=True):
    """What was learnt: for each word how telling it is, and its direction (a row of `directions`)."""

    words: Sequence[str]
    weights: "Floats"
    directions: "Floats"

    @property
    def dimensions(self) -> int:
        """How long a vector is."""
        return int(self.directions.shape[1])

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Where each word stands."""
        return {word: number for number, word in enumerate(self.words)}

    def file_vectors(self, corpus: Corpus) -> "Floats":
        """Return a vector of length 1 for each file, all zeros for one without a known word."""
        import numpy as np

        known = np.array([self.numbers.get(word, -1) for word in corpus.words], dtype=np.int64)
        held = np.flatnonzero(known >= 0)
        by_file, _ = _weigh(corpus.of_words(held), self.weights[known[held]])
        return unit(_Sparse(by_file.starts, known[held][by_file.columns], by_file.values).times(self.directions))

    def query(self, words: Mapping[str, int]) -> "Floats | None":
        """Return the vector of these words (each with how often it is said), None where none is known."""
        import numpy as np

        known = [(number, times) for word, times in words.items() if (number := self.numbers.get(word)) is not None]
        if not known:
            return None
        places = np.array([number for number, _ in known])
        values = (1 + np.log([times for _, times in known])) * self.weights[places]
        vector: Floats = values.astype(np.float32) @ self.directions[places]
        length = np.linalg.norm(vector)
        return vector / length if length > 0 else None


def train(corpus: Corpus, dimensions: int = DIMENSIONS, seed: int = 0) -> Projection | None:
    """Learn from the files; None where there are too few of them to learn anything.

    Time and memory are bounded whatever the corpus, by `MOST_TAUGHT_FILES` and `MOST_WORDS`. Blocks for seconds.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    if len(corpus.paths) > MOST_TAUGHT_FILES:
        chosen = np.sort(random.choice(len(corpus.paths), MOST_TAUGHT_FILES, replace=False))
        corpus = corpus.of_files(chosen.tolist())
    taught = corpus.of_words(_vocabulary(corpus))
    fewest = min(len(taught.paths), len(taught.words))
    if fewest < FEWEST_FILES:
        return None
    spread = np.diff(taught.starts)
    weights = (np.log((1 + len(taught.paths)) / (1 + spread)) + 1).astype(np.float32)
    directions = _right_singular_vectors(*_weigh(taught, weights), min(dimensions, fewest - 1), random)
    return Projection(taught.words, weights, directions)


def unit(vectors: "Floats") -> "Floats":
    """Return the rows with length 1; a row of zeros stays one."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return made


def _vocabulary(corpus: Corpus) -> "NDArray[np.int64]":
    import numpy as np

    spread = np.diff(corpus.starts)
    most = max(2, int(_EVERYWHERE * len(corpus.paths)))
    telling = np.flatnonzero((spread >= 2) & (spread <= most))
    # `stable`: equal ones in the order of their numbers, so that the same files teach the same.
    commonest = telling[np.argsort(-spread[telling], kind="stable")][:MOST_WORDS]
    return np.sort(commonest)


class _Sparse(Struct, frozen=True):
    """A matrix of which row `i` holds `values` in `columns`, at the places `starts[i]` to `starts[i + 1]` of both."""

    starts: "NDArray[np.int64]"
    columns: "NDArray[np.int64]"
    values: "Floats"

    def times(self, matrix: "Floats") -> "Floats":
        """Return the product with a dense matrix, made of few rows at a time."""
        import numpy as np

        product = np.zeros((len(self.starts) - 1, matrix.shape[1]), dtype=np.float32)
        most = _FLOATS_AT_ONCE // matrix.shape[1]
        first = 0
        while first < len(product):
            fit = int(np.searchsorted(self.starts, self.starts[first] + most, side="right")) - 1
            last = max(first + 1, fit)
            begin, end = int(self.starts[first]), int(self.starts[last])
            filled = first + np.flatnonzero(np.diff(self.starts[first : last + 1]))
            if len(filled):
                taken = matrix[self.columns[begin:end]]
                taken *= self.values[begin:end, None]
                product[filled] = np.add.reduceat(taken, self.starts[filled] - begin, axis=0)
            first = last
        return product


def _weigh(corpus: Corpus, weights: "Floats") -> tuple[_Sparse, _Sparse]:
    """Return the weighted words by file, each file of length 1, and the same matrix by word."""
    import numpy as np

    values = ((1 + np.log(corpus.counts)) * np.repeat(weights, np.diff(corpus.starts))).astype(np.float32)
    squares = np.bincount(corpus.rows, weights=values.astype(np.float64) ** 2, minlength=len(corpus.paths))
    values /= np.sqrt(squares)[corpus.rows].astype(np.float32)
    order = np.argsort(corpus.rows, kind="stable")
    columns = np.repeat(np.arange(len(corpus.words)), np.diff(corpus.starts))[order]
    starts = starts_of(np.bincount(corpus.rows, minlength=len(corpus.paths)))
    return _Sparse(starts, columns, values[order]), _Sparse(corpus.starts, corpus.rows.astype(np.int64), values)


def _right_singular_vectors(by_file: _Sparse, by_word: _Sparse, wanted: int, random: "np.random.Generator") -> "Floats":
    """Return the `wanted` foremost right singular vectors of the matrix, as columns; `by_word` is its transpose."""
    import numpy as np

    height, width = len(by_file.starts) - 1, len(by_word.starts) - 1
    tried = min(wanted + _SPARE_DIRECTIONS, height, width)
    across = random.standard_normal((width, tried), dtype=np.float32)
    for _ in range(_ROUNDS):
        across = np.linalg.qr(by_word.times(np.linalg.qr(by_file.times(across))[0]))[0]
    along = np.linalg.qr(by_file.times(across))[0]
    small = by_word.times(along)
    # The small matrix's singular vectors, by way of its square, from the largest on.
    _, turn = np.linalg.eigh((small.T @ small).astype(np.float64))
    found = small @ turn[:, ::-1][:, :wanted].astype(np.float32)
    return np.ascontiguousarray(unit(found.T).T)
