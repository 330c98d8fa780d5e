"""A search: which files fit, which of their pieces are shown, and why."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.history.repo_history import Past
from agent_workbench.adapters.retrieval.index.file_kinds import Kind
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.search.explanation import Explanation
from agent_workbench.adapters.retrieval.search.features import KIND_OF, PART_SHARES, Evidence, Feature, gather
from agent_workbench.adapters.retrieval.search.layout import layout_of
from agent_workbench.adapters.retrieval.search.query import Place, Query, read_query
from agent_workbench.adapters.retrieval.search.selection import Selection, select
from agent_workbench.core.retrieval import CodeQuery, Signal, SignalKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Kinds = NDArray[np.int8]

SHARES = {Kind.SOURCE: 1.0, Kind.TEST: 0.7, Kind.DOCUMENT: 0.6, Kind.GENERATED: 0.7}
# Where nothing tells words apart, as in a repo of one file, more of them are still better.
_EACH_WORD = 0.001
_MOST_REASONS = 6
# Words are looked up again for each piece that is explained; nobody reads what is further down.
_MOST_EXPLAINED = 20


class Found(Struct, frozen=True):
    """A piece that fits a query: where it is, in which content of the file, and why it came."""

    path: str
    blob: str
    first_line: int
    last_line: int
    symbol: str
    score: float
    why: tuple[str, ...]
    signals: tuple[Signal, ...] = ()


def search(
    view: IndexView, query: CodeQuery, past: Past | None, similar: Mapping[str, float] | None, limit: int
) -> list[Found]:
    """Return the best pieces for a query, best first, at most a few of each file.

    `past` is what is known of past commits; `similar` are the files that are like the query, with how much (0 to 1).
    """
    if not view.pieces or limit < 1:
        return []
    read = read_query(query, layout_of(view).names)
    evidence = gather(view, read, past, similar)
    files = _lessened(view, read, _hit(evidence))
    named = {piece: place for place in read.places if (piece := _piece_at(view, place, evidence)) is not None}
    definers = {name: frozenset(view.definers(name)) for name in read.names}
    chosen = select(view, files, evidence.pieces, list(named), limit, frozenset().union(*definers.values()))
    reasons = Explanation(view, read, definers, past, [each.piece for each in chosen[:_MOST_EXPLAINED]])
    return [_found(view, each, evidence, named.get(each.piece), reasons) for each in chosen]


def _hit(evidence: Evidence) -> "Scores":
    """Return the mix for the files that the query itself hits, 0 for others, however much happens around them."""
    import numpy as np

    files, held = evidence.files, evidence.held
    speaks = held > 0
    for feature in (Feature.TITLES, Feature.NEAREST, Feature.VECTOR):
        if feature in files:
            speaks |= files[feature] > 0
    scores: Scores = np.where(speaks, mix(files) + _EACH_WORD * held, 0.0)
    return scores


def mix(files: "Mapping[Feature, Scores]") -> "Scores":
    """Return by file the weighted sum of what speaks for it."""
    given = weights(with_vectors=Feature.VECTOR in files)
    parts = [weight * files[feature] for feature, weight in given.items() if feature in files]
    total: Scores = sum(parts[1:], parts[0])
    return total


@cache
def weights(*, with_vectors: bool) -> Mapping[Feature, float]:
    """Return what each feature counts, as `bench/fit_retrieval.py` found it; none counts nothing. Blocks once."""
    text = resources.files(__package__).joinpath("weights.json").read_text(encoding="utf-8")
    found = json.loads(text)["with_vectors" if with_vectors else "without_vectors"]
    return {Feature(name): float(weight) for name, weight in found.items()}


def counted_as(view: IndexView, query: Query) -> "Kinds":
    """Return by file the `Kind` it counts as for a query: source, where it asks for just this kind."""
    asked = {Kind.TEST: query.of_tests, Kind.DOCUMENT: query.of_documents}
    kinds = view.kinds.copy()
    for kind in (kind for kind, wanted in asked.items() if wanted):
        kinds[kinds == kind] = Kind.SOURCE
    return kinds


def _lessened(view: IndexView, query: Query, files: "Scores") -> "Scores":
    """Return the scores with less for tests, documents, and what tools made, unless they are asked for."""
    import numpy as np

    scores: Scores = files * np.array([SHARES[kind] for kind in Kind])[counted_as(view, query)]
    return scores


def _piece_at(view: IndexView, place: Place, evidence: Evidence) -> int | None:
    """Return the piece of the named file that holds the line, or the best one where no line is named."""
    file = view.number_of(place.path)
    held = range(0) if file is None else view.pieces_of(file)
    if not held:
        return None
    if not place.line:
        return held[int(evidence.pieces[held.start : held.stop].argmax())]
    after = bisect_right(held, place.line, key=lambda piece: view.extent(piece).first_line)
    return held[max(after - 1, 0)]


def _found(
    view: IndexView, selection: Selection, evidence: Evidence, place: Place | None, reasons: Explanation
) -> Found:
    piece = selection.piece
    path, extent = view.path_of(int(view.file_of[piece])), view.extent(piece)
    words, why = reasons.words(piece), reasons.best(piece)
    named = path.rsplit("/", 1)[-1] + (f":{place.line}" if place and place.line else "")
    if place is not None:
        why.insert(0, named)
    signals = _signals(_told(dict(_shares(view, piece, evidence)), words), words, named if place else "")
    return Found(
        path,
        view.blob_of(path),
        extent.first_line,
        extent.last_line,
        extent.symbol,
        round(selection.score, 3),
        tuple(why[:_MOST_REASONS]),
        signals,
    )


def _shares(view: IndexView, piece: int, evidence: Evidence) -> Iterator[tuple[SignalKind, float]]:
    """Yield by kind what it adds to the score; what the pieces add is divided as body, names and comments hit here."""
    file = int(view.file_of[piece])
    added = dict.fromkeys(SignalKind, 0.0)
    for feature, weight in weights(with_vectors=Feature.VECTOR in evidence.files).items():
        if feature in evidence.files:
            added[KIND_OF[feature]] += weight * float(evidence.files[feature][file])
    parts = {kind: PART_SHARES[kind] * max(float(scores[piece]), 0.0) for kind, scores in evidence.parts.items()}
    whole = sum(parts.values())
    if whole > 0:
        of_words = added.pop(SignalKind.WORDS)
        for kind, part in parts.items():
            added[kind] = added.get(kind, 0.0) + of_words * part / whole
    yield from added.items()


def _told(added: Mapping[SignalKind, float], words: Mapping[SignalKind, Sequence[str]]) -> Mapping[SignalKind, float]:
    """Return what is added, by kinds that are true of the piece and not of its file alone.

    Names that it neither defines nor uses, and words that it does not hold, are somewhere beside it.
    """
    told = dict(added)
    for kind in (SignalKind.WORDS, SignalKind.NAMED, SignalKind.CALLS):
        # Of what is not explained the words are not known, which is not that there are none.
        if kind in told and kind in words and not words[kind]:
            defines = kind == SignalKind.CALLS and words.get(SignalKind.NAMED)
            instead = SignalKind.NAMED if defines else SignalKind.BESIDE
            told[instead] = told.get(instead, 0.0) + told.pop(kind)
    return told


def _signals(
    added: Mapping[SignalKind, float], words: Mapping[SignalKind, Sequence[str]], named: str
) -> tuple[Signal, ...]:
    """Return the shares that sum to 1, largest first; what is named stands for two thirds of why it came."""
    amounts = {kind: amount for kind, amount in added.items() if amount > 0}
    if named:
        amounts[SignalKind.NAMED] = amounts.get(SignalKind.NAMED, 0.0) + (2 * sum(amounts.values()) or 1.0)
    total = sum(amounts.values())
    signals = [
        Signal(kind, amount / total, (named,) if named and kind == SignalKind.NAMED else tuple(words.get(kind, ())))
        for kind, amount in amounts.items()
    ]
    return tuple(sorted(signals, key=lambda signal: -signal.share))
