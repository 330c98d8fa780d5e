"""Selection of the shown chunks: the best chunks of the best files, a few for each file."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.view import IndexView

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

MAX_PER_FILE = 3
# A second chunk of a file is less informative than the first chunk of another.
_NEXT_CHUNK_SHARE = 0.7
# Share of the results for mentioned places if the query mentions more than are shown.
_NAMED_SHARE = 0.8


class SelectedChunk(Struct, frozen=True):
    """Selected chunk by its number, and its final score."""

    chunk: int
    score: float


def select(
    view: IndexView,
    files: "Scores",
    chunks: "Scores",
    named: Sequence[int],
    limit: int,
    defining: Collection[int] = (),
) -> list[SelectedChunk]:
    """Return at most `limit` chunks, best first: those of `named`, then by the score of their file and their own.

    Within a file, chunks that are `defining` a symbol of the query come first.
    """
    final = {
        number: score for file in _best(files, limit) for number, score in _few(view, file, files, chunks, defining)
    }
    top = max(final.values(), default=0.0) + 1.0
    for chunk in named:
        final.setdefault(chunk, float(files[view.file_of[chunk]]))
    most = limit if len(set(named)) < limit else max(1, int(limit * _NAMED_SHARE))
    first = sorted(set(named), key=lambda chunk: (-final[chunk], chunk))[:most]
    for chunk in first:
        final[chunk] += top
    taken: dict[int, int] = {}
    chosen: list[SelectedChunk] = []
    for chunk in sorted(final, key=lambda chunk: (-final[chunk], chunk)):
        file = int(view.file_of[chunk])
        taken[file] = taken.get(file, 0) + 1
        if (taken[file] <= MAX_PER_FILE or chunk in first) and len(chosen) < limit:
            chosen.append(SelectedChunk(chunk, final[chunk]))
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
    view: IndexView, file: int, files: "Scores", chunks: "Scores", defining: Collection[int]
) -> list[tuple[int, float]]:
    """Return the best chunks of a file with their scores; the first has the file's own."""
    held = view.chunks_of(file)
    if not held:
        return []
    scores = chunks[held.start : held.stop].astype(float)
    best, whole = float(scores.max()) or 1.0, float(files[file])
    # Above all other chunks, in their former order.
    for chunk in defining:
        if chunk in held:
            scores[chunk - held.start] += 2 * best
    first, *others = (-scores).argsort(kind="stable")[:MAX_PER_FILE].tolist()
    shares = [(held[each], min(float(scores[each]) / best, 1.0)) for each in others if scores[each] > 0]
    return [(held[first], whole), *((chunk, whole * _NEXT_CHUNK_SHARE * share) for chunk, share in shares)]
