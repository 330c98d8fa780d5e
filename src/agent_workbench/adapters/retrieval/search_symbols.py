"""Symbols of the index: files that define or use those of a query, and names that complete what is typed."""

from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.core.repo.retrieval import Completion
from agent_workbench.ranking.stems import stem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

# A name with more definitions is not specific.
_MAX_DEFINERS = 30


def defined(view: IndexView, names: Sequence[str]) -> "Scores":
    """Return for each file the number of `names` it defines; source files that define the same name share it."""
    import numpy as np

    scores = np.zeros(len(view.kinds))
    for name in names:
        files = np.unique(view.file_of[view.definers(name)])
        source = files[view.kinds[files] == FileKind.SOURCE]
        files = source if len(source) else files
        if 0 < len(files) <= _MAX_DEFINERS:
            scores[files] += 1 / len(files)
    return scores


def matching_symbols(view: IndexView, prefix: str, limit: int) -> tuple[Completion, ...]:
    """Return symbols whose last part begins with `prefix` first, then those that contain it; shorter names first."""
    wanted = prefix.lower()
    ranked = []
    for low, chunk in view.cached(_names):
        if wanted in low:
            begins = low.startswith(wanted) or low.startswith(wanted, low.rfind(".") + 1)
            ranked.append((not begins, len(low), low, chunk))
    found = []
    for _, _, _, chunk in nsmallest(limit, ranked):
        extent = view.extent(chunk)
        place = f"{view.path_of(int(view.file_of[chunk]))}:{extent.first_line}-{extent.last_line}"
        found.append(Completion(place, extent.symbol))
    return tuple(found)


def _names(view: IndexView) -> "list[tuple[str, int]]":
    """Return the lower-cased symbols of the live chunks, each with its chunk; of several pieces of one, the first."""
    names, first = [], 0
    for segment, alive in zip(view.segments, view.alive, strict=True):
        lives = alive[segment.file_of].tolist()
        files, last = segment.file_of.tolist(), None
        for local, symbol in enumerate(segment.extents.symbols):
            if symbol and lives[local] and (files[local], symbol) != last:
                names.append((symbol.lower(), first + local))
            last = (files[local], symbol)
        first += len(lives)
    return names


def words_of(names: Sequence[str]) -> list[str]:
    """Return the names as they are indexed in the body of chunks: whole and stemmed."""
    return [stem(name.strip("_").lower()) for name in names]
