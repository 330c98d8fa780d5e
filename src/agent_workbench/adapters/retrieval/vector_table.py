"""Vectors in memory: one for each file content of a repo, shared by all its folders."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# Files beyond this are searched without vectors.
MAX_BYTES = 32 * 1024 * 1024
# Until the first vector is there, its length is taken to be this.
_PRESUMED_DIMENSIONS = 1_024
# Less is rounding.
_LEAST_EXCESS = 1e-4


class FileVectors(Struct, frozen=True):
    """The files of one folder that have a vector: for each of `paths` its row in `matrix`; rows have length 1."""

    paths: Sequence[str]
    rows: "NDArray[np.int64]"
    matrix: "Floats"

    def nearest(self, vector: "Floats", limit: int) -> dict[str, float]:
        """Return at most `limit` files that are more similar to `vector` (length 1) than the average file, best first.

        With each comes its cosine minus the mean one. Models differ in the cosine of unrelated texts,
        and only what is above it tells files apart.
        """
        import numpy as np

        if not self.paths:
            return {}
        cosines = (self.matrix @ vector)[self.rows]
        excess = cosines - cosines.mean() if len(cosines) > 1 else cosines
        some = np.argpartition(-excess, limit)[:limit] if limit < len(excess) else np.arange(len(excess))
        best = some[np.lexsort((some, -excess[some]))]
        return {self.paths[each]: float(excess[each]) for each in best.tolist() if excess[each] > _LEAST_EXCESS}

    def cosines(self, vector: "Floats") -> dict[str, float]:
        """Return the cosine of each file's vector and `vector` (length 1), as it is."""
        values = (self.matrix @ vector)[self.rows]
        return dict(zip(self.paths, map(float, values.tolist()), strict=True))


class VectorTable:
    """Vectors by content (git blob id), at most `MAX_BYTES` of them. For one thread at a time.

    A row that was returned never changes: new vectors go behind it, or into another matrix.
    """

    def __init__(self, blobs: Sequence[str] = (), matrix: "Floats | None" = None) -> None:
        self._matrix = matrix  # with room for more rows than there are
        self._row_of = {blob: row for row, blob in enumerate(blobs)}

    @property
    def dimensions(self) -> int:
        """Length of a vector, 0 while there is none."""
        return 0 if self._matrix is None else int(self._matrix.shape[1])

    def fitting(self, blobs: Sequence[str]) -> list[int]:
        """Return the positions in `blobs` of the contents that fit into the table, each content once."""
        positions: dict[str, int] = {}
        for position, blob in enumerate(blobs):
            positions.setdefault(blob, position)
        return list(positions.values())[: _capacity(self.dimensions or _PRESUMED_DIMENSIONS)]

    def missing(self, blobs: Sequence[str]) -> list[int]:
        """Return the positions among `fitting` whose content has no vector."""
        return [position for position in self.fitting(blobs) if blobs[position] not in self._row_of]

    def add(self, blobs: Sequence[str], vectors: "Floats", living: Sequence[str]) -> None:
        """Add vectors; where they do not fit, drop those whose content is not among `living`."""
        import numpy as np

        capacity = _capacity(vectors.shape[1])
        if len(self._row_of) + len(blobs) > capacity:
            self._retain([blob for blob in dict.fromkeys(living) if blob in self._row_of])
        first = len(self._row_of)
        end = min(capacity, first + len(blobs))
        if self._matrix is None or len(self._matrix) < end:
            grown = np.empty((min(capacity, max(end, 2 * first)), vectors.shape[1]), np.float32)
            if first:
                grown[:first] = self._rows()
            self._matrix = grown
        self._matrix[first:end] = vectors[: end - first]
        self._row_of |= {blob: first + position for position, blob in enumerate(blobs[: end - first])}

    def of_files(self, paths: Sequence[str], blobs: Sequence[str]) -> FileVectors:
        """Return the vectors of files, given by path and content; files without one are left out."""
        import numpy as np

        found = [
            (path, row) for path, blob in zip(paths, blobs, strict=True) if (row := self._row_of.get(blob, -1)) >= 0
        ]
        rows = np.array([row for _, row in found], dtype=np.int64)
        return FileVectors([path for path, _ in found], rows, self._rows())

    def of_contents(self, blobs: Sequence[str]) -> "tuple[list[str], Floats]":
        """Return those of these contents that have a vector, and the vectors."""
        known = [blob for blob in blobs if blob in self._row_of]
        return known, self._rows()[[self._row_of[blob] for blob in known]]

    def _retain(self, blobs: Sequence[str]) -> None:
        self._matrix = self._rows()[[self._row_of[blob] for blob in blobs]]
        self._row_of = {blob: row for row, blob in enumerate(blobs)}

    def _rows(self) -> "Floats":
        import numpy as np

        return np.zeros((0, 0), np.float32) if self._matrix is None else self._matrix[: len(self._row_of)]


def unit_rows(matrix: "Floats") -> "Floats":
    """Return the rows scaled to length 1; a row of zeros stays."""
    import numpy as np

    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: Floats = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return scaled


def _capacity(dimensions: int) -> int:
    return MAX_BYTES // (4 * max(1, dimensions))
