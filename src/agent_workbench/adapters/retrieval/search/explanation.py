"""Explanation of results: the words of the query that matched each chunk."""

from collections.abc import Collection, Mapping, Sequence

from agent_workbench.adapters.retrieval.history.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.index.segments import Field
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.search.features import BODY_LENGTH, PART_SHARES
from agent_workbench.adapters.retrieval.search.layout import layout_of
from agent_workbench.adapters.retrieval.search.query import ParsedQuery
from agent_workbench.adapters.retrieval.search.symbols import words_of
from agent_workbench.core.repo.retrieval import SignalKind
from agent_workbench.ranking.bm25 import B, Bm25

# For each kind of signal its field, BM25's `b`, and its weight.
_FIELDS = {
    SignalKind.WORDS: (Field.BODY, BODY_LENGTH, PART_SHARES[SignalKind.WORDS]),
    SignalKind.SYMBOL: (Field.NAMES, B, PART_SHARES[SignalKind.SYMBOL]),
    SignalKind.COMMENTS: (Field.COMMENTS, B, PART_SHARES[SignalKind.COMMENTS]),
    SignalKind.PATH: (Field.PATH, B, 1.0),
}
_MAX_WORDS = 6


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
