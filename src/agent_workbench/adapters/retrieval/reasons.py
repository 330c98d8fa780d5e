"""The words of a query by which a piece was found."""

from collections.abc import Sequence

from agent_workbench.adapters.retrieval.features import BODY_LENGTH, COMMENTS_SHARE, NAMES_SHARE
from agent_workbench.adapters.retrieval.history import Past
from agent_workbench.adapters.retrieval.query import Query
from agent_workbench.adapters.retrieval.segments import Field
from agent_workbench.adapters.retrieval.view import IndexView
from agent_workbench.core.retrieval import SignalKind

# By kind of signal: the field, how much its length counts, what its hits are worth beside one another.
_FIELDS = {
    SignalKind.WORDS: (Field.BODY, BODY_LENGTH, 1.0),
    SignalKind.SYMBOL: (Field.NAMES, 0.75, NAMES_SHARE),
    SignalKind.COMMENTS: (Field.COMMENTS, 0.75, COMMENTS_SHARE),
    SignalKind.PATH: (Field.PATH, 0.75, 1.0),
}
_MOST = 6


class Reasons:
    """Says of any piece which words hit it, as they were written, best first."""

    def __init__(self, view: IndexView, query: Query, past: Past | None) -> None:
        self._view = view
        self._query = query
        self._past = past
        self._definers = {name: frozenset(view.definers(name)) for name in query.names}
        self._known: dict[tuple[SignalKind, int], list[tuple[str, float]]] = {}

    def words(self, piece: int) -> dict[SignalKind, Sequence[str]]:
        """Return by kind of signal the words that hit."""
        found = {kind: self._written([root for root, _ in self._hits(kind, piece)]) for kind in _FIELDS}
        file = int(self._view.file_of[piece])
        if self._past is not None:
            held = self._past.words_of(self._view.path_of(file), self._query.stems)
            found[SignalKind.HISTORY] = self._written(held)
        defined = [name for name, pieces in self._definers.items() if piece in pieces]
        return found | {SignalKind.NAMED: tuple(defined[:_MOST])}

    def best(self, piece: int) -> list[str]:
        """Return the words that hit anywhere."""
        shares: dict[str, float] = {}
        for kind, (_, _, weight) in _FIELDS.items():
            for root, share in self._hits(kind, piece):
                shares[root] = shares.get(root, 0.0) + weight * share
        return list(self._written(sorted(shares, key=lambda root: (-shares[root], root))))

    def _hits(self, kind: SignalKind, piece: int) -> list[tuple[str, float]]:
        field, length, _ = _FIELDS[kind]
        row = int(self._view.file_of[piece]) if field == Field.PATH else piece
        if (kind, row) not in self._known:
            self._known[kind, row] = self._view.field(field, b=length).explain(row, self._query.stems)
        return self._known[kind, row]

    def _written(self, stems: Sequence[str]) -> Sequence[str]:
        return tuple(self._query.written[root] for root in stems[:_MOST])
