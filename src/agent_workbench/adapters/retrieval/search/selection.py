"""Selection of the shown chunks: the best chunks of the best files, a few for each file."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.view import IndexView

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

MOST_IN_A_FILE = 3
# A second chunk of a file is less informative than the first chunk of another.
_NEXT_IN_FILE = 0.7
# Share of the results for mentioned places if the query mentions more than are shown.
_NAMED_SHARE = 0.8


class Selection(Struct, frozen=True):
    """Selected chunk by its number, and its final score."""

    piece: int
    score: float


def select(
    view: IndexView,
    files: "Scores",
    pieces: "Scores",
    named: Sequence[int],
    limit: int,
    defining: Collection[int] = (),
) -> list[Selection]:
    """Return at most `limit` chunks, best first: those of `named`, then by the score of their file and their own.

    Within a file, chunks that are `defining` a symbol of the query come first.
    """
    final = {
        number: score for file in _best(files, limit) for number, score in _few(view, file, files, pieces, defining)
    }
    top = max(final.values(), default=0.0) + 1.0
    for piece in named:
        final.setdefault(piece, float(files[view.file_of[piece]]))
    most = limit if len(set(named)) < limit else max(1, int(limit * _NAMED_SHARE))
    first = sorted(set(named), key=lambda piece: (-final[piece], piece))[:most]
    for piece in first:
        final[piece] += top
    taken: dict[int, int] = {}
    chosen: list[Selection] = []
    for piece in sorted(final, key=lambda piece: (-final[piece], piece)):
        file = int(view.file_of[piece])
        taken[file] = taken.get(file, 0) + 1
        if (taken[file] <= MOST_IN_A_FILE or piece in first) and len(chosen) < limit:
            chosen.append(Selection(piece, final[piece]))
    return chosen


def _best(files: "Scores", limit: int) -> list[int]:
    """Return the files with a score above 0, best first."""
    import numpy as np

    hits = np.flatnonzero(files > 0)
    if len(hits) > limit:
        # Ties at the boundary are in order of their numbers, as everywhere.
        edge = np.partition(files[hits], len(hits) - limit)[len(hits) - limit]
        hits = hits[files[hits] >= edge]
    best: list[int] = hits[np.lexsort((hits, -files[hits]))][:limit].tolist()
    return best


def _few(
    view: IndexView, file: int, files: "Scores", pieces: "Scores", defining: Collection[int]
) -> list[tuple[int, float]]:
    """Return the best chunks of a file with their scores; the first has the file's own."""
    held = view.pieces_of(file)
    if not held:
        return []
    scores = pieces[held.start : held.stop].astype(float)
    best, whole = float(scores.max()) or 1.0, float(files[file])
    # Above all other chunks, in their former order.
    scores[[piece - held.start for piece in held if piece in defining]] += 2 * best
    first, *others = (-scores).argsort(kind="stable")[:MOST_IN_A_FILE].tolist()
    shares = [(held[each], min(float(scores[each]) / best, 1.0)) for each in others if scores[each] > 0]
    return [(held[first], whole), *((piece, whole * _NEXT_IN_FILE * share) for piece, share in shares)]
