"""What speaks for each file: one number for each reason, the best source file having 1."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.calls import defined, used
from agent_workbench.adapters.retrieval.history import Past
from agent_workbench.adapters.retrieval.kinds import Kind
from agent_workbench.adapters.retrieval.layout import Layout, layout_of
from agent_workbench.adapters.retrieval.query import Query
from agent_workbench.adapters.retrieval.segments import Field
from agent_workbench.adapters.retrieval.view import IndexView
from agent_workbench.core.retrieval import SignalKind
from agent_workbench.ranking.stems import count_stems

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

# How much a long piece counts less: half as much as usual, for they are of like length already; a file still less.
BODY_LENGTH = 0.5
_FILE_LENGTH = 0.3
# What a name and a comment are worth beside the body of a piece.
NAMES_SHARE, COMMENTS_SHARE = 0.4, 0.3
_BODY_SHARE = 1.0
# `part: what was done`, or `[part] …`: before the colon stands where.
_SCOPE = re.compile(r"\[?([\w ./*,()!-]{2,40}?)\]?:\s")


class Feature(StrEnum):
    """A reason why a file comes; the names stand in `weights.json`."""

    PIECES = "pieces"  # its three best pieces
    TITLE_PIECES = "title_pieces"  # the same for the first line of the query alone
    TITLE_WHOLE = "title_whole"  # all its words
    COVERED = "covered"  # how much of the query its best piece covers
    PATH = "path"
    FOLDER = "folder"  # the words of its folder
    SCOPE = "scope"  # the path, by what stands before the colon of the first line
    SIBLINGS = "siblings"  # how well the other files of its folder fit
    DEFINED = "defined"  # names that the query says as code does
    USED = "used"
    PAIRS = "pairs"  # names made of two words of the query
    MESSAGES = "messages"  # the messages of the commits that touched it
    TITLES = "titles"
    NEAREST = "nearest"  # the past commits most like the query
    NEAREST_TITLE = "nearest_title"
    RECENT = "recent"  # how much was done to it lately
    VECTOR = "vector"


KIND_OF = {
    Feature.PIECES: SignalKind.WORDS,
    Feature.TITLE_PIECES: SignalKind.WORDS,
    Feature.TITLE_WHOLE: SignalKind.WORDS,
    Feature.COVERED: SignalKind.WORDS,
    Feature.PATH: SignalKind.PATH,
    Feature.FOLDER: SignalKind.PATH,
    Feature.SCOPE: SignalKind.PATH,
    Feature.SIBLINGS: SignalKind.PATH,
    Feature.DEFINED: SignalKind.NAMED,
    Feature.USED: SignalKind.CALLS,
    Feature.PAIRS: SignalKind.SYMBOL,
    Feature.MESSAGES: SignalKind.HISTORY,
    Feature.TITLES: SignalKind.HISTORY,
    Feature.NEAREST: SignalKind.HISTORY,
    Feature.NEAREST_TITLE: SignalKind.HISTORY,
    Feature.RECENT: SignalKind.HISTORY,
    Feature.VECTOR: SignalKind.VECTOR,
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """By feature a number for each file, and the scores of the pieces, of which body, names and comments are parts."""

    files: "Mapping[Feature, Scores]"
    pieces: "Scores"
    parts: "Mapping[SignalKind, Scores]"


def gather(view: IndexView, query: Query, past: Past | None, similar: "Mapping[str, float] | None") -> Evidence:
    """Return all that speaks for any file of the view; without a past or vectors their features are missing."""
    layout = layout_of(view)
    parts = _parts(view, query.stems)
    pieces = _sum(parts)
    title = _sum(_parts(view, query.title)) if query.title != query.stems else pieces
    best, path = layout.best_three(pieces), view.field(Field.PATH).scores(query.stems)
    raw = {
        Feature.PIECES: best,
        Feature.TITLE_PIECES: layout.best_three(title) if title is not pieces else best,
        Feature.TITLE_WHOLE: view.field(Field.WHOLE_FILE, b=_FILE_LENGTH).scores(query.title),
        Feature.COVERED: layout.best(view.field(Field.BODY, k1=0.0).scores(tuple(dict.fromkeys(query.stems)))),
        Feature.PATH: path,
        Feature.FOLDER: layout.folders.scores(query.stems),
        Feature.SCOPE: view.field(Field.PATH).scores(_scope(query)),
        Feature.DEFINED: defined(view, query.names),
        Feature.USED: used(view, query.names),
        Feature.PAIRS: view.field(Field.WHOLE_FILE).scores(query.pairs),
    }
    if past is not None:
        raw |= _history(view, query, past)
    if similar:
        raw[Feature.VECTOR] = _by_row(view, similar)
    files = {feature: _relative(view, scores) for feature, scores in raw.items()}
    files[Feature.SIBLINGS] = _relative(view, _siblings(view, layout, files))
    return Evidence(files, pieces, parts)


def _parts(view: IndexView, words: tuple[str, ...]) -> "dict[SignalKind, Scores]":
    """Return by piece what its body, names and comments say, each as much as it counts."""
    return {
        SignalKind.WORDS: _BODY_SHARE * view.field(Field.BODY, b=BODY_LENGTH).scores(words),
        SignalKind.SYMBOL: NAMES_SHARE * view.field(Field.NAMES).scores(words),
        SignalKind.COMMENTS: COMMENTS_SHARE * view.field(Field.COMMENTS).scores(words),
    }


def _sum(parts: "Mapping[SignalKind, Scores]") -> "Scores":
    import numpy as np

    total: Scores = np.maximum(sum(parts.values(), np.zeros(1)), 0.0)
    return total


def _scope(query: Query) -> list[str]:
    match = _SCOPE.match(query.first_line)
    return list(count_stems(match[1])) if match else []


def _history(view: IndexView, query: Query, past: Past) -> "dict[Feature, Scores]":
    import numpy as np

    rows = past.rows_in(view)
    known = rows >= 0

    def placed(scores: "Scores") -> "Scores":
        found = np.zeros(len(view.kinds))
        found[rows[known]] = scores[known]
        return found

    return {
        Feature.MESSAGES: placed(past.words(query.stems)),
        Feature.TITLES: placed(past.titles(query.title)),
        Feature.NEAREST: placed(past.nearest(query.stems)),
        Feature.NEAREST_TITLE: placed(past.nearest_titles(query.title)),
        Feature.RECENT: placed(past.recent),
    }


def _siblings(view: IndexView, layout: Layout, files: "Mapping[Feature, Scores]") -> "Scores":
    """Return how well the files beside each fit, by the plainest of reasons."""
    import numpy as np

    fit = files[Feature.PIECES] + 0.5 * files[Feature.PATH]
    if Feature.MESSAGES in files:
        fit = fit + 0.4 * files[Feature.MESSAGES]
    return layout.siblings(np.where(view.kinds == Kind.SOURCE, fit, 0.0))


def _by_row(view: IndexView, similar: "Mapping[str, float]") -> "Scores":
    import numpy as np

    found = np.zeros(len(view.kinds))
    for path, cosine in similar.items():
        number = view.number_of(path)
        if number is not None:
            found[number] = cosine
    return found


def _relative(view: IndexView, scores: "Scores") -> "Scores":
    """Return the scores as parts of the best source file's, or of the best at all; none below 0."""
    import numpy as np

    best = float(scores.max(initial=0.0, where=view.kinds == Kind.SOURCE)) or float(scores.max(initial=0.0))
    relative: Scores = np.clip(scores / best, 0.0, 2.0) if best > 0 else np.zeros(len(scores))
    return relative
