"""Ranking of one search: weighted features of files, the best chunks of the best, their signals and matched words."""

import json
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.segments import Field
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.search_features import (
    BODY_LENGTH,
    KIND_OF,
    PART_SHARES,
    Evidence,
    Feature,
    compute_features,
    layout_of,
    words_of,
)
from agent_workbench.adapters.retrieval.search_query import MentionedPlace, ParsedQuery, read_query
from agent_workbench.core.repo.retrieval import CodeQuery, Signal, SignalKind
from agent_workbench.ranking.bm25 import B, Bm25

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Kinds = NDArray[np.int8]


# For each kind of signal its field, BM25's `b`, and its weight.
_FIELDS = {
    SignalKind.WORDS: (Field.BODY, BODY_LENGTH, PART_SHARES[SignalKind.WORDS]),
    SignalKind.SYMBOL: (Field.NAMES, B, PART_SHARES[SignalKind.SYMBOL]),
    SignalKind.COMMENTS: (Field.COMMENTS, B, PART_SHARES[SignalKind.COMMENTS]),
    SignalKind.PATH: (Field.PATH, B, 1.0),
}
_MAX_WORDS = 6

MAX_PER_FILE = 3
# A second chunk of a file is less informative than the first chunk of another.
_NEXT_CHUNK_SHARE = 0.7
# Share of the results for mentioned places if the query mentions more than are shown.
_NAMED_SHARE = 0.8

# A generated file is found only if the query names it.
KIND_SHARES = {
    FileKind.SOURCE: 1.0,
    FileKind.TEST: 0.7,
    FileKind.DOCUMENT: 0.6,
    FileKind.GENERATED: 0.0,
    FileKind.VENDORED: 0.7,
}
# Score of each matching word where all idfs are 0, as in a repo of one file.
_EACH_WORD = 0.001
_MAX_REASONS = 6
# Words are looked up again for each explained chunk; results further down are rarely read, and have no reasons.
_MAX_EXPLAINED = 20
# glibc returns freed memory to the system and gets it back page by page, until a block of this size was freed: then it
# keeps twice as much. That was half the time of a search.
_BLOCK_BYTES = 8_000_000


class MatchExplanation:
    """Matching words of `chunks`, as they were written, best first; for other chunks, the names they define.

    `definers` are the chunks that define a symbol of the query, by name.
    """

    def __init__(
        self,
        view: IndexView,
        query: ParsedQuery,
        definers: Mapping[str, Collection[int]],
        commit_index: CommitIndex | None,
        chunks: Sequence[int],
    ) -> None:
        self._view, self._query, self._definers = view, query, definers
        self._file_of = dict(zip(chunks, view.file_of[list(chunks)].tolist(), strict=True))
        known = list(dict.fromkeys(self._file_of.values()))
        self._hits: dict[int, dict[SignalKind, list[tuple[str, float]]]] = {chunk: {} for chunk in chunks}
        for kind, (field, length, _) in _FIELDS.items():
            rows = known if field == Field.PATH else chunks
            told = dict(zip(rows, view.field(field, b=length).explain_all(rows, query.stems), strict=True))
            for chunk, file in self._file_of.items():
                self._hits[chunk][kind] = told[file if field == Field.PATH else chunk]
        said = commit_index.words_of([view.path_of(file) for file in known], query.stems) if commit_index else []
        self._said = dict(zip(known, said, strict=False))
        self._folders = self._stems_of(layout_of(view).folders, known, query.stems)
        self._used = self._names(view.field(Field.BODY, b=BODY_LENGTH), chunks)
        self._around = self._words_beside(known)

    def words(self, chunk: int) -> dict[SignalKind, Sequence[str]]:
        """Return the matching words by kind of signal."""
        defined = tuple(name for name, chunks in self._definers.items() if chunk in chunks)[:_MAX_WORDS]
        if chunk not in self._hits:
            return {SignalKind.NAMED: defined}
        file = self._file_of[chunk]
        found = {kind: self._written([root for root, _ in hits]) for kind, hits in self._hits[chunk].items()}
        return found | {
            SignalKind.NAMED: defined,
            SignalKind.CALLS: tuple(name for name in self._used[chunk] if name not in defined)[:_MAX_WORDS],
            SignalKind.FOLDER: self._written(self._folders[file]),
            SignalKind.BESIDE: self._around[file][:_MAX_WORDS],
            SignalKind.HISTORY: self._written(self._said.get(file, ())),
        }

    def _words_beside(self, files: Sequence[int]) -> dict[int, Sequence[str]]:
        """Return for each file the symbols it contains, preceded by its words for a shown chunk without a match."""
        names = self._names(self._view.field(Field.WHOLE_FILE), files)
        for name, chunks in self._definers.items():
            for file in set(self._view.file_of[list(chunks)].tolist()) & names.keys():
                names[file] = tuple(dict.fromkeys((*names[file], name)))
        bare = {self._file_of[chunk] for chunk, hits in self._hits.items() if not any(map(hits.get, PART_SHARES))}
        roots = self._stems_of(self._view.field(Field.WHOLE_FILE), sorted(bare), self._query.stems)
        return names | {file: (*self._written(found), *names[file]) for file, found in roots.items()}

    def _names(self, field: Bm25, rows: Sequence[int]) -> dict[int, Sequence[str]]:
        """Return for each row of the field the symbols of the query it contains."""
        written = dict(zip(words_of(self._query.names), self._query.names, strict=True))
        roots = self._stems_of(field, rows, tuple(written))
        return {row: tuple(written[root] for root in found) for row, found in roots.items()}

    @staticmethod
    def _stems_of(field: Bm25, rows: Sequence[int], stems: Sequence[str]) -> dict[int, Sequence[str]]:
        explained = field.explain_all(rows, stems)
        return {row: [root for root, _ in hits] for row, hits in zip(rows, explained, strict=True)}

    def best(self, chunk: int) -> list[str]:
        """Return all matching words of a chunk."""
        shares: dict[str, float] = {}
        for kind, hits in self._hits.get(chunk, {}).items():
            for root, share in hits:
                shares[root] = shares.get(root, 0.0) + _FIELDS[kind][2] * share
        return list(self._written(sorted(shares, key=lambda root: (-shares[root], root))))

    def _written(self, stems: Sequence[str]) -> Sequence[str]:
        return tuple(self._query.written[root] for root in stems[:_MAX_WORDS])


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


class FoundChunk(Struct, frozen=True):
    """Chunk found by a search: its lines, the blob id of its file, its score and signals."""

    path: str
    blob: str
    first_line: int
    last_line: int
    symbol: str
    score: float
    why: tuple[str, ...]
    signals: tuple[Signal, ...] = ()


def search(
    view: IndexView, query: CodeQuery, commit_index: CommitIndex | None, similar: Mapping[str, float] | None, limit: int
) -> list[FoundChunk]:
    """Return the best chunks for a query, best first, at most a few of each file.

    `commit_index` are the commits of the repo; `similar` are files whose vectors are close to the query's.
    """
    if not view.chunks or limit < 1:
        return []
    read = read_query(query, layout_of(view).names)
    evidence = compute_features(view, read, commit_index, similar)
    files = _with_kind_shares(view, read, _scores_of_matches(evidence))
    named = {chunk: place for place in read.places if (chunk := _chunk_at(view, place, evidence)) is not None}
    definers = {name: frozenset(view.definers(name)) for name in read.names}
    defining = frozenset().union(*definers.values())
    chosen = select(view, _relevant(files, query.floor), evidence.chunks, list(named), limit, defining)
    reasons = MatchExplanation(view, read, definers, commit_index, [each.chunk for each in chosen[:_MAX_EXPLAINED]])
    return [
        _found(view, each, evidence, named.get(each.chunk), reasons if rank < _MAX_EXPLAINED else None)
        for rank, each in enumerate(chosen)
    ]


def _scores_of_matches(evidence: Evidence) -> "Scores":
    """Return the mix for files that match the query, 0 for files with only recent commits."""
    import numpy as np

    files, held = evidence.files, evidence.held
    matches = held > 0
    for feature in (Feature.TITLES, Feature.NEAREST, Feature.VECTOR):
        if feature in files:
            matches |= files[feature] > 0
    scores: Scores = np.where(matches, weighted_sum(files) + _EACH_WORD * held, 0.0)
    return scores


def weighted_sum(files: "Mapping[Feature, Scores]") -> "Scores":
    """Return the weighted sum of the features of each file."""
    feature_weights = weights(with_vectors=Feature.VECTOR in files)
    parts = [weight * files[feature] for feature, weight in feature_weights.items() if feature in files]
    total: Scores = sum(parts[1:], parts[0])
    return total


@cache
def weights(*, with_vectors: bool) -> Mapping[Feature, float]:
    """Return the weight of each feature, fitted by `bench/fit_retrieval.py`. Blocks at the first call."""
    text = resources.files(__package__).joinpath("weights.json").read_text(encoding="utf-8")
    found = json.loads(text)["with_vectors" if with_vectors else "without_vectors"]
    return {Feature(name): float(weight) for name, weight in found.items()}


def effective_kinds(view: IndexView, query: ParsedQuery) -> "Kinds":
    """Return the kind that each file counts as: source for a kind that the query asks for."""
    asked = {FileKind.TEST: query.of_tests, FileKind.DOCUMENT: query.of_documents}
    kinds = view.kinds.copy()
    for kind in (kind for kind, wanted in asked.items() if wanted):
        kinds[kinds == kind] = FileKind.SOURCE
    return kinds


def _with_kind_shares(view: IndexView, query: ParsedQuery, files: "Scores") -> "Scores":
    """Return the scores, reduced for tests, documents and generated files unless the query asks for them."""
    import numpy as np

    scores: Scores = files * np.array([KIND_SHARES[kind] for kind in FileKind])[effective_kinds(view, query)]
    return scores


def _relevant(files: "Scores", floor: float) -> "Scores":
    """Return the scores, 0 for files below this share of the best score."""
    import numpy as np

    scores: Scores = np.where(files >= floor * files.max(initial=0.0), files, 0.0)
    return scores


def _chunk_at(view: IndexView, place: MentionedPlace, evidence: Evidence) -> int | None:
    """Return the chunk of the mentioned file that contains the line, or its best chunk without a line."""
    file = view.number_of(place.path)
    held = range(0) if file is None else view.chunks_of(file)
    if not held:
        return None
    if not place.line:
        return held[int(evidence.chunks[held.start : held.stop].argmax())]
    after = bisect_right(held, place.line, key=lambda chunk: view.extent(chunk).first_line)
    return held[max(after - 1, 0)]


def _found(
    view: IndexView,
    selection: SelectedChunk,
    evidence: Evidence,
    place: MentionedPlace | None,
    reasons: MatchExplanation | None,
) -> FoundChunk:
    """Return the chunk with its reasons; without `reasons` with none but a mention."""
    chunk = selection.chunk
    path, extent = view.path_of(int(view.file_of[chunk])), view.extent(chunk)
    named = path.rsplit("/", 1)[-1] + (f":{place.line}" if place.line else "") if place is not None else ""
    why = [named] if named else []
    signals: tuple[Signal, ...] = ()
    if reasons is not None:
        words = reasons.words(chunk)
        why += reasons.best(chunk)
        signals = _signals(_as_chunk_signals(dict(_shares(view, chunk, evidence)), words), words, named)
    return FoundChunk(
        path,
        view.blob_of(path),
        extent.first_line,
        extent.last_line,
        extent.symbol,
        round(selection.score, 3),
        tuple(why[:_MAX_REASONS]),
        signals,
    )


def _shares(view: IndexView, chunk: int, evidence: Evidence) -> Iterator[tuple[SignalKind, float]]:
    """Yield the share of each kind in the score.

    The share of chunks is divided by the matches in body, names and comments.
    """
    file = int(view.file_of[chunk])
    added = dict.fromkeys(SignalKind, 0.0)
    for feature, weight in weights(with_vectors=Feature.VECTOR in evidence.files).items():
        if feature in evidence.files:
            added[KIND_OF[feature]] += weight * float(evidence.files[feature][file])
    parts = {kind: PART_SHARES[kind] * max(float(scores[chunk]), 0.0) for kind, scores in evidence.parts.items()}
    whole = sum(parts.values())
    if whole > 0:
        of_words = added.pop(SignalKind.WORDS)
        for kind, part in parts.items():
            added[kind] = added.get(kind, 0.0) + of_words * part / whole
    yield from added.items()


def _as_chunk_signals(
    added: Mapping[SignalKind, float], words: Mapping[SignalKind, Sequence[str]]
) -> Mapping[SignalKind, float]:
    """Return the shares with kinds that are true of the chunk, not only of its file.

    Symbols and words that the chunk itself does not contain count as `BESIDE`.
    """
    shares = dict(added)
    for kind in (SignalKind.WORDS, SignalKind.SYMBOL, SignalKind.NAMED, SignalKind.CALLS):
        # Without an explanation the words are unknown, not absent.
        if kind in shares and kind in words and not words[kind]:
            defines = kind == SignalKind.CALLS and words.get(SignalKind.NAMED)
            instead = SignalKind.NAMED if defines else SignalKind.BESIDE
            shares[instead] = shares.get(instead, 0.0) + shares.pop(kind)
    return shares


def _signals(
    added: Mapping[SignalKind, float], words: Mapping[SignalKind, Sequence[str]], named: str
) -> tuple[Signal, ...]:
    """Return the shares as signals that sum to 1, largest first; a mention gets two thirds."""
    amounts = {kind: amount for kind, amount in added.items() if amount > 0}
    if named:
        amounts[SignalKind.NAMED] = amounts.get(SignalKind.NAMED, 0.0) + (2 * sum(amounts.values()) or 1.0)
    total = sum(amounts.values())
    signals = [
        Signal(kind, amount / total, (named,) if named and kind == SignalKind.NAMED else tuple(words.get(kind, ())))
        for kind, amount in amounts.items()
    ]
    return tuple(sorted(signals, key=lambda signal: -signal.share))


@cache
def keep_freed_memory() -> None:
    """Let this process keep up to 16 MB of freed memory for the next search. No effect without glibc."""
    import numpy as np

    np.empty(_BLOCK_BYTES, np.uint8)
