"""Lookup tables of an index view, shared by its searches: chunks by file, words of folders, paths by name."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING
from weakref import proxy

from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.search_query import PathLookup
from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.postings_reader import IndexPart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Numbers = NDArray[np.int64]

# Weights of the three best chunks of a file.
_SHARES = (1.0, 1 / 2, 1 / 3)


class ViewPaths(PathLookup):
    """Lookup of the live files of a view by path or name."""

    def __init__(self, view: IndexView) -> None:
        # The view caches this object: a weak reference avoids a reference cycle.
        self._view = proxy(view)

    def has(self, path: str) -> bool:
        return self._view.find(path) is not None

    def with_name(self, name: str) -> Sequence[str]:
        found = chain.from_iterable(segment.files.with_name(name) for segment in self._view.segments)
        return [path for path in dict.fromkeys(found) if self.has(path)]


class ViewLayout:
    """Lookup tables of one view. Chunks and files have the numbers that the view gives them."""

    def __init__(self, view: IndexView) -> None:
        import numpy as np

        self.names: PathLookup = ViewPaths(view)
        self.source: Numbers = np.flatnonzero(view.kinds == FileKind.SOURCE)
        # Scorer of the words of each file's folder.
        self.folders = Bm25(
            [
                IndexPart(*segment.files.folder_words, None if alive.all() else alive)
                for segment, alive in zip(view.segments, view.alive, strict=True)
            ]
        )
        # Folder of each file by number; deleted files are in a folder of their own, the first.
        numbers: dict[str, int] = {}
        folder_of = [
            np.where(alive, [numbers.setdefault(each, len(numbers) + 1) for each in segment.files.folders], 0)
            for segment, alive in zip(view.segments, view.alive, strict=True)
        ]
        self._folder_of: Numbers = np.concatenate([np.zeros(0, np.int64), *folder_of], dtype=np.int64)
        self._count = len(view.kinds)
        self._starts: Numbers = np.flatnonzero(np.diff(view.file_of, prepend=-1))
        self._files = view.file_of[self._starts]
        self._sizes = np.diff(self._starts, append=len(view.file_of))

    def best(self, scores: "Scores") -> "Scores":
        """Return for each file the score of its best chunk."""
        return self._by_file(self._best(scores))

    def best_three(self, scores: "Scores") -> "Scores":
        """Return for each file the weighted sum of its three best chunks."""
        import numpy as np

        left = scores
        best = found = self._best(left)
        for share in _SHARES[1:]:
            left = left * (left < np.repeat(best, self._sizes))
            best = self._best(left)
            found = found + share * best
        return self._by_file(found)

    def siblings(self, scores: "Scores") -> "Scores":
        """Return for each file the mean score of the other files in its folder."""
        import numpy as np

        folder_of = self._folder_of
        size = int(folder_of.max(initial=0)) + 1
        total = np.bincount(folder_of, scores, minlength=size)[folder_of] - scores
        count = np.bincount(folder_of[self._files], minlength=size)[folder_of] - 1
        mean: Scores = np.where(count > 0, total / np.maximum(count, 1), 0.0)
        return mean

    def _best(self, scores: "Scores") -> "Scores":
        """Return the best score of each file that has chunks."""
        import numpy as np

        return np.maximum.reduceat(scores, self._starts) if len(self._starts) else np.zeros(0)

    def _by_file(self, scores: "Scores") -> "Scores":
        import numpy as np

        found = np.zeros(self._count)
        found[self._files] = scores
        return found


def layout_of(view: IndexView) -> ViewLayout:
    """Return the lookup tables of the view, which caches them."""
    return view.cached(ViewLayout)
