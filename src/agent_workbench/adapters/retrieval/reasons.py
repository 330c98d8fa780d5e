"""The words of a query by which a piece was found."""

from collections.abc import Sequence

from agent_workbench.adapters.retrieval.features import BODY_LENGTH, PART_SHARES
from agent_workbench.adapters.retrieval.history import Past
from agent_workbench.adapters.retrieval.query import Query
from agent_workbench.adapters.retrieval.segments import Field
from agent_workbench.adapters.retrieval.view import IndexView
from agent_workbench.core.retrieval import SignalKind
from agent_workbench.ranking.bm25 import B

# By kind of signal: the field, how much its length counts, what its hits are worth beside one another.
_FIELDS = {
    SignalKind.WORDS: (Field.BODY, BODY_LENGTH, PART_SHARES[SignalKind.WORDS]),
    SignalKind.SYMBOL: (Field.NAMES, B, PART_SHARES[SignalKind.SYMBOL]),
    SignalKind.COMMENTS: (Field.COMMENTS, B, PART_SHARES[SignalKind.COMMENTS]),
    SignalKind.PATH: (Field.PATH, B, 1.0),
}
_MOST = 6


class Reasons:
    """Says of the `pieces` which words hit them, as they were written, best first; of all others nothing."""

    def __init__(self, view: IndexView, query: Query, past: Past | None, pieces: Sequence[int]) -> None:
        self._query = query
        self._definers = {name: frozenset(view.definers(name)) for name in query.names}
        files = view.file_of[list(pieces)].tolist()
        known = list(dict.fromkeys(files))
        self._hits: dict[int, dict[SignalKind, list[tuple[str, float]]]] = {piece: {} for piece in pieces}
        for kind, (field, length, _) in _FIELDS.items():
            rows = known if field == Field.PATH else pieces
            told = dict(zip(rows, view.field(field, b=length).explain_all(rows, query.stems), strict=True))
            for piece, file in zip(pieces, files, strict=True):
                self._hits[piece][kind] = told[file if field == Field.PATH else piece]
        said = past.words_of([view.path_of(file) for file in known], query.stems) if past else []
        of_file = dict(zip(known, said, strict=False))
        self._said = {piece: of_file[file] for piece, file in zip(pieces, files, strict=True)} if past else {}

    def words(self, piece: int) -> dict[SignalKind, Sequence[str]]:
        """Return by kind of signal the words that hit."""
        if piece not in self._hits:
            return {}
        found = {kind: self._written([root for root, _ in hits]) for kind, hits in self._hits[piece].items()}
        if piece in self._said:
            found[SignalKind.HISTORY] = self._written(self._said[piece])
        defined = [name for name, pieces in self._definers.items() if piece in pieces]
        return found | {SignalKind.NAMED: tuple(defined[:_MOST])}

    def best(self, piece: int) -> list[str]:
        """Return the words that hit anywhere."""
        shares: dict[str, float] = {}
        for kind, hits in self._hits.get(piece, {}).items():
            for root, share in hits:
                shares[root] = shares.get(root, 0.0) + _FIELDS[kind][2] * share
        return list(self._written(sorted(shares, key=lambda root: (-shares[root], root))))

    def _written(self, stems: Sequence[str]) -> Sequence[str]:
        return tuple(self._query.written[root] for root in stems[:_MOST])
