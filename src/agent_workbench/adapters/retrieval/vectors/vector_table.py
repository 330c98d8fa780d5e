"""Vectors held for searching: by content, shared by all folders of a repo."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.vectors.lsa import DIMENSIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# Whoever has more large files than fit searches the rest without vectors.
MOST_BYTES = 32 * 1024 * 1024


class FileVectors(Struct, frozen=True):
    """The files of one folder that have a vector: beside `paths` the `rows` of `matrix`, each of length 1."""

    paths: Sequence[str]
    rows: "NDArray[np.int64]"
    matrix: "Floats"

    def similarities(self, vector: "Floats") -> "Floats":
        """Return the cosine of each file with a vector of length 1."""
        found: Floats = (self.matrix @ vector)[self.rows]
        return found

    def nearest(self, vector: "Floats", limit: int) -> dict[str, float]:
        """Return at most `limit` files that point in the vector's direction, with their cosines, best first."""
        import numpy as np

        cosines = self.similarities(vector)
        some = np.argpartition(-cosines, limit)[:limit] if limit < len(cosines) else np.arange(len(cosines))
        best = some[np.lexsort((some, -cosines[some]))]
        return {self.paths[each]: float(cosines[each]) for each in best.tolist() if cosines[each] > 0}


class VectorTable:
    """All vectors of a repo that are at hand, by the names of the contents. For one thread at a time."""

    def __init__(self, blobs: Sequence[str] = (), matrix: "Floats | None" = None) -> None:
        self._matrix = matrix
        self._row_of = {blob: row for row, blob in enumerate(blobs)}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._row_of)

    @property
    def dimensions(self) -> int:
        """How long a vector is, 0 where there is none."""
        return 0 if self._matrix is None else int(self._matrix.shape[1])

    def missing(self, blobs: Sequence[str]) -> list[int]:
        """Return the places in `blobs` of those that have no vector and for which there is room, each content once."""
        places: dict[str, int] = {}
        for place, blob in enumerate(blobs):
            places.setdefault(blob, place)
        wanted = list(places.items())[: self._most(self.dimensions or DIMENSIONS)]
        return [place for blob, place in wanted if blob not in self._row_of]

    def add(self, blobs: Sequence[str], vectors: "Floats", living: Sequence[str]) -> None:
        """Take in more, where they fit; when they do not, those go that are not `living`."""
        import numpy as np

        most = self._most(vectors.shape[1])
        if len(self._row_of) + len(blobs) > most:
            self._keep([blob for blob in dict.fromkeys(living) if blob in self._row_of])
        room = max(0, most - len(self._row_of))
        first = len(self._row_of)
        self._row_of |= {blob: first + place for place, blob in enumerate(blobs[:room])}
        self._matrix = vectors[:room] if self._matrix is None else np.concatenate((self._matrix, vectors[:room]))

    def of_files(self, paths: Sequence[str], blobs: Sequence[str]) -> FileVectors:
        """Return the vectors of these files, without those that have none."""
        import numpy as np

        found = [
            (path, row) for path, blob in zip(paths, blobs, strict=True) if (row := self._row_of.get(blob, -1)) >= 0
        ]
        rows = np.array([row for _, row in found], dtype=np.int64)
        return FileVectors([path for path, _ in found], rows, self._all())

    def of_contents(self, blobs: Sequence[str]) -> "tuple[list[str], Floats]":
        """Return those of these contents that have a vector, and the vectors."""
        known = [blob for blob in blobs if blob in self._row_of]
        return known, self._all()[[self._row_of[blob] for blob in known]]

    def _keep(self, blobs: Sequence[str]) -> None:
        self._matrix = self._all()[[self._row_of[blob] for blob in blobs]]
        self._row_of = {blob: row for row, blob in enumerate(blobs)}

    def _all(self) -> "Floats":
        import numpy as np

        return np.zeros((0, 0), dtype=np.float32) if self._matrix is None else self._matrix

    @staticmethod
    def _most(dimensions: int) -> int:
        return MOST_BYTES // (4 * max(1, dimensions))
