"""How the files of a view lie: their folders, and their pieces behind one another."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from agent_workbench.adapters.retrieval.query import Names
from agent_workbench.adapters.retrieval.view import IndexView
from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.stems import count_stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Numbers = NDArray[np.int64]

# A file is as good as its three best pieces together, the later ones counting less.
_SHARES = (1.0, 1 / 2, 1 / 3)


class Layout:
    """What searches of one view have in common. Files and pieces are numbered as in the view."""

    def __init__(self, view: IndexView) -> None:
        import numpy as np

        paths = list(view.paths())
        self.names = Names(paths)
        # A file that is gone lies in a folder without a name, and scores nothing.
        words: list[Mapping[str, int]] = [{}] * len(view.kinds)
        numbers: dict[str, tuple[int, Mapping[str, int]]] = {"": (0, {})}
        self.folder_of: Numbers = np.zeros(len(view.kinds), np.int64)
        for path in paths:
            folder, file = path.rpartition("/")[0], view.number_of(path)
            if file is not None:
                if folder not in numbers:
                    numbers[folder] = len(numbers), count_stems(folder)
                self.folder_of[file], words[file] = numbers[folder]
        self._folders = len(numbers)
        self.folders = Bm25.of(words)  # by file, the words of its folder
        begins = np.flatnonzero(np.diff(view.file_of, prepend=-1))
        self._starts, self._files, self._file_of = begins, view.file_of[begins], view.file_of

    def best(self, scores: "Scores") -> "Scores":
        """Return by file the score of its best piece."""
        import numpy as np

        found = np.zeros(len(self.folder_of))
        if len(self._starts):
            found[self._files] = np.maximum.reduceat(scores, self._starts)
        return found

    def best_three(self, scores: "Scores") -> "Scores":
        """Return by file what its three best pieces say together."""
        import numpy as np

        found, left = np.zeros(len(self.folder_of)), scores
        for share in _SHARES:
            best = self.best(left)
            found += share * best
            left = np.where(left >= best[self._file_of], 0.0, left)
        return found

    def siblings(self, scores: "Scores") -> "Scores":
        """Return by file the mean score of the other files in its folder that have any."""
        import numpy as np

        size = self._folders
        total = np.bincount(self.folder_of, scores, minlength=size)[self.folder_of] - scores
        count = np.bincount(self.folder_of[self._files], minlength=size)[self.folder_of] - 1
        mean: Scores = np.where(count > 0, total / np.maximum(count, 1), 0.0)
        return mean


_LAYOUTS: "WeakKeyDictionary[IndexView, Layout]" = WeakKeyDictionary()


def layout_of(view: IndexView) -> Layout:
    """Return the layout of the view, made at the first call."""
    found = _LAYOUTS.get(view)
    if found is None:
        found = _LAYOUTS[view] = Layout(view)
    return found
