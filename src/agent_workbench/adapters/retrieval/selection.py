"""Which pieces are shown: files are weighed by their best pieces, and none fills the list alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

MOST_IN_A_FILE = 3
# A file is as good as its three best pieces together, the later ones counting less.
_FILE_SHARES = (1.0, 1 / 2, 1 / 3)
# A second piece of a file says less that is new than a first one of another.
_NEXT_IN_FILE = 0.7
_MOST_CANDIDATES = 1_000
# What the query names comes first, but leaves room for what it only describes.
_NAMED_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Selection:
    """A piece, by its number, and its final score."""

    piece: int
    score: float


def select(scores: "Scores", file_of: Sequence[int], named: Sequence[int], limit: int) -> list[Selection]:
    """Return at most `limit` pieces, best first: those of `named`, then by their own score and their file's."""
    by_file: dict[int, list[int]] = {}
    for piece in _candidates(scores, named):
        by_file.setdefault(file_of[piece], []).append(piece)
    final: dict[int, float] = {}
    for pieces in by_file.values():
        best = float(scores[pieces[0]]) or 1.0
        whole = sum(share * float(scores[piece]) for share, piece in zip(_FILE_SHARES, pieces, strict=False))
        for place, piece in enumerate(pieces):
            final[piece] = whole * float(scores[piece]) / best * (_NEXT_IN_FILE if place else 1.0)
    top = max(final.values(), default=0.0) + 1.0
    first = sorted(set(named), key=lambda piece: (-final[piece], piece))[: max(1, int(limit * _NAMED_SHARE))]
    for piece in first:
        final[piece] += top
    return _few_of_each(sorted(final, key=lambda piece: (-final[piece], piece)), final, file_of, limit)


def _candidates(scores: "Scores", named: Sequence[int]) -> list[int]:
    """Return the pieces that hit or are named, best first."""
    import numpy as np

    hits = np.flatnonzero(scores > 0)
    best = hits[np.lexsort((hits, -scores[hits]))][:_MOST_CANDIDATES].tolist()
    known = set(best)
    return [*best, *(piece for piece in dict.fromkeys(named) if piece not in known)]


def _few_of_each(ranked: Sequence[int], final: dict[int, float], file_of: Sequence[int], limit: int) -> list[Selection]:
    taken: dict[int, int] = {}
    chosen: list[Selection] = []
    for piece in ranked:
        file = file_of[piece]
        if taken.get(file, 0) >= MOST_IN_A_FILE:
            continue
        taken[file] = taken.get(file, 0) + 1
        chosen.append(Selection(piece, final[piece]))
        if len(chosen) == limit:
            break
    return chosen
