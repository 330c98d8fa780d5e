"""Features of files for one query, from 0 to 1; and the tables and symbols of an index view that they are read from."""

import re
from collections.abc import Sequence
from enum import StrEnum
from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING
from weakref import proxy

from msgspec import Struct

from agent_workbench.adapters.retrieval.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.segments import Field
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.search_query import ParsedQuery, PathLookup
from agent_workbench.core.repo.retrieval import Completion, SignalKind
from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.postings_reader import IndexPart, ScoreKind, ScoreRequest
from agent_workbench.ranking.tokens import count_stems, stem

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Numbers = NDArray[np.int64]


# Weights of the three best chunks of a file.
_SHARES = (1.0, 1 / 2, 1 / 3)

# BM25's `b` for chunks, which are of similar length already, and for whole files.
BODY_LENGTH = 0.5
_FILE_LENGTH = 0.3
# Weights of body, names and comments of a chunk.
PART_SHARES = {SignalKind.WORDS: 1.0, SignalKind.SYMBOL: 0.4, SignalKind.COMMENTS: 0.3}
# Weights of path and messages beside the chunks of a file's siblings.
_PATH_OF_SIBLINGS, _MESSAGES_OF_SIBLINGS = 0.5, 0.4
# The scope in `scope: what was done` or `[scope] …`.
_SCOPE = re.compile(r"\[?([\w ./*,()!-]{2,40}?)\]?:\s")

# A name with more definitions is not specific.
_MAX_DEFINERS = 30


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
