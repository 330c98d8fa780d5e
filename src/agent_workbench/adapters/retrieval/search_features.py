"""Features of files for one query: numbers from 0 to 1, where the best source file has 1."""

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.segments import Field
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.search_layout import ViewLayout, layout_of
from agent_workbench.adapters.retrieval.search_query import ParsedQuery
from agent_workbench.adapters.retrieval.search_symbols import defined, words_of
from agent_workbench.core.repo.retrieval import SignalKind
from agent_workbench.ranking.hits import ScoreKind, ScoreRequest
from agent_workbench.ranking.stems import count_stems

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

# BM25's `b` for chunks, which are of similar length already, and for whole files.
BODY_LENGTH = 0.5
_FILE_LENGTH = 0.3
# Weights of body, names and comments of a chunk.
PART_SHARES = {SignalKind.WORDS: 1.0, SignalKind.SYMBOL: 0.4, SignalKind.COMMENTS: 0.3}
# Weights of path and messages beside the chunks of a file's siblings.
_PATH_OF_SIBLINGS, _MESSAGES_OF_SIBLINGS = 0.5, 0.4
# The scope in `scope: what was done` or `[scope] …`.
_SCOPE = re.compile(r"\[?([\w ./*,()!-]{2,40}?)\]?:\s")


class Feature(StrEnum):
    """Feature of a file; the values are the keys of `weights.json`."""

    CHUNKS = "pieces"  # its three best chunks
    TITLE_CHUNKS = "title_pieces"  # the same for the first line of the query
    TITLE_WHOLE = "title_whole"  # the whole file, for the first line of the query
    COVERED = "covered"  # share of the query's words in its best chunk
    PATH = "path"
    FOLDER = "folder"  # words of its folder
    SCOPE = "scope"  # its path, for the scope of the query's first line
    SIBLINGS = "siblings"  # how well the other files of its folder match
    DEFINED = "defined"  # definitions of names that are written as code in the query
    USED = "used"
    PAIRS = "pairs"  # names made of two neighbouring words of the query
    MESSAGES = "messages"  # messages of commits that touched it
    TITLES = "titles"  # first lines of these messages
    NEAREST = "nearest"  # past commits most similar to the query
    NEAREST_TITLE = "nearest_title"
    RECENT = "recent"  # recent commits that touched it
    VECTOR = "vector"


KIND_OF = {
    Feature.CHUNKS: SignalKind.WORDS,
    Feature.TITLE_CHUNKS: SignalKind.WORDS,
    Feature.TITLE_WHOLE: SignalKind.WORDS,
    Feature.COVERED: SignalKind.WORDS,
    Feature.PATH: SignalKind.PATH,
    Feature.FOLDER: SignalKind.FOLDER,
    Feature.SCOPE: SignalKind.PATH,
    Feature.SIBLINGS: SignalKind.SIBLINGS,
    Feature.DEFINED: SignalKind.NAMED,
    Feature.USED: SignalKind.CALLS,
    Feature.PAIRS: SignalKind.SYMBOL,
    Feature.MESSAGES: SignalKind.HISTORY,
    Feature.TITLES: SignalKind.HISTORY,
    Feature.NEAREST: SignalKind.HISTORY,
    Feature.NEAREST_TITLE: SignalKind.HISTORY,
    Feature.RECENT: SignalKind.RECENT,
    Feature.VECTOR: SignalKind.VECTOR,
}


class Evidence(Struct, frozen=True):
    """Feature values by file, scores by chunk, their parts, and the coverage of the query by file.

    `parts` are the unweighted scores of body, names and comments. `held` counts for each file the distinct words of the
    query in its content, plus those in its path.
    """

    files: "Mapping[Feature, Scores]"
    chunks: "Scores"
    parts: "Mapping[SignalKind, Scores]"
    held: "Scores"


def compute_features(
    view: IndexView, query: ParsedQuery, commit_index: CommitIndex | None, similar: "Mapping[str, float] | None"
) -> Evidence:
    """Return the features of all files of the view; without history or vectors, their features are absent."""
    layout, asked = layout_of(view), ScoreRequest(query.stems)
    title = [ScoreRequest(query.title)] if query.title != query.stems else []
    words, rarity, *title_words = view.field(Field.BODY, b=BODY_LENGTH).compute(
        asked, ScoreRequest(tuple(dict.fromkeys(query.stems)), ScoreKind.RARITY), *title
    )
    names, *title_names = view.field(Field.NAMES).compute(asked, *title)
    comments, *title_comments = view.field(Field.COMMENTS).compute(asked, *title)
    chunks = _sum(words, names, comments)
    best = layout.best_three(chunks)
    titles = zip(title_words, title_names, title_comments, strict=True)
    whole, held = view.field(Field.WHOLE_FILE, b=_FILE_LENGTH).compute(
        ScoreRequest(query.title), ScoreRequest(query.stems, ScoreKind.COVERAGE)
    )
    path, scope, in_path = view.field(Field.PATH).compute(
        asked, ScoreRequest(_scope(query)), ScoreRequest(query.stems, ScoreKind.COVERAGE)
    )
    used, pairs = view.field(Field.WHOLE_FILE).compute(ScoreRequest(words_of(query.names)), ScoreRequest(query.pairs))
    raw = {
        Feature.CHUNKS: best,
        Feature.TITLE_CHUNKS: next((layout.best_three(_sum(*each)) for each in titles), best),
        Feature.TITLE_WHOLE: whole,
        Feature.COVERED: layout.best(rarity),
        Feature.PATH: path,
        Feature.FOLDER: layout.folders.scores(query.stems),
        Feature.SCOPE: scope,
        Feature.DEFINED: defined(view, query.names),
        Feature.USED: used,
        Feature.PAIRS: pairs,
    }
    if commit_index is not None:
        raw |= _history(view, query, commit_index)
    if similar:
        raw[Feature.VECTOR] = _by_row(view, similar)
    parts = {SignalKind.WORDS: words, SignalKind.SYMBOL: names, SignalKind.COMMENTS: comments}
    files = _normalized(layout, raw)
    files |= _normalized(layout, {Feature.SIBLINGS: _siblings(view, layout, files)})
    return Evidence(files, chunks, parts, held + in_path)


def _sum(words: "Scores", names: "Scores", comments: "Scores") -> "Scores":
    """Return the weighted sum of body, names and comments for each chunk."""
    import numpy as np

    total = PART_SHARES[SignalKind.SYMBOL] * names
    total += words
    total += PART_SHARES[SignalKind.COMMENTS] * comments
    return np.maximum(total, 0.0, out=total)


def _scope(query: ParsedQuery) -> list[str]:
    match = _SCOPE.match(query.first_line)
    return list(count_stems(match[1])) if match else []


def _history(view: IndexView, query: ParsedQuery, commit_index: CommitIndex) -> "dict[Feature, Scores]":
    import numpy as np

    rows, known = commit_index.rows_in(view)

    def placed(scores: "Scores") -> "Scores":
        found = np.zeros(len(view.kinds))
        found[rows] = scores[known]
        return found

    return {
        Feature.MESSAGES: placed(commit_index.messages(query.stems)),
        Feature.TITLES: placed(commit_index.titles(query.title)),
        Feature.NEAREST: placed(commit_index.nearest(query.stems)),
        Feature.NEAREST_TITLE: placed(commit_index.nearest_titles(query.title)),
        Feature.RECENT: placed(commit_index.recent),
    }


def _siblings(view: IndexView, layout: ViewLayout, files: "Mapping[Feature, Scores]") -> "Scores":
    """Return for each file how well the other source files of its folder match, by the plainest features."""
    import numpy as np

    match = files[Feature.CHUNKS] + _PATH_OF_SIBLINGS * files[Feature.PATH]
    if Feature.MESSAGES in files:
        match = match + _MESSAGES_OF_SIBLINGS * files[Feature.MESSAGES]
    return layout.siblings(np.where(view.kinds == FileKind.SOURCE, match, 0.0))


def _by_row(view: IndexView, similar: "Mapping[str, float]") -> "Scores":
    import numpy as np

    found = np.zeros(len(view.kinds))
    for path, cosine in similar.items():
        number = view.number_of(path)
        if number is not None:
            found[number] = cosine
    return found


def _normalized(layout: ViewLayout, raw: "Mapping[Feature, Scores]") -> "dict[Feature, Scores]":
    """Return the scores as shares of the best source file's score, or of the best file's; none below 0."""
    import numpy as np

    found = {}
    for feature, scores in raw.items():
        best = float(scores[layout.source].max(initial=0.0)) or float(scores.max(initial=0.0))
        found[feature] = np.clip(scores / best, 0.0, 2.0) if best > 0 else np.zeros(len(scores))
    return found
