"""Matches of the symbols in a query: files that define them, and files that use them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.view import IndexView
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


def words_of(names: Sequence[str]) -> list[str]:
    """Return the names as they are indexed in the body of chunks: whole and stemmed."""
    return [stem(name.strip("_").lower()) for name in names]
