"""Names that a query says: where they are defined, and where they are used."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.index.file_kinds import Kind
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.ranking.stems import stem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

# A name that more files define is the name of something else each time.
_MOST_DEFINERS = 30


def defined(view: IndexView, names: Sequence[str]) -> "Scores":
    """Return by file how many of the names it defines; what is defined in several source files is shared by them."""
    import numpy as np

    scores = np.zeros(len(view.kinds))
    for name in names:
        files = np.unique(view.file_of[view.definers(name)])
        source = files[view.kinds[files] == Kind.SOURCE]
        files = source if len(source) else files
        if 0 < len(files) <= _MOST_DEFINERS:
            scores[files] += 1 / len(files)
    return scores


def words_of(names: Sequence[str]) -> list[str]:
    """Return the names as the index holds them where they are used: whole."""
    return [stem(name.strip("_").lower()) for name in names]
