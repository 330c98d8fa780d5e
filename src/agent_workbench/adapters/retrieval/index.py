"""The words of all pieces of one workspace, searched in several fields at once."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.kinds import is_document, is_test
from agent_workbench.adapters.retrieval.pieces import Piece
from agent_workbench.adapters.retrieval.query import Names, Place, Query, read_query
from agent_workbench.adapters.retrieval.selection import Selection, select
from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.stems import count_stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

# What a hit in each field is worth; found by trying on commits of public repositories, as is the next.
_BODY, _NAMES, _COMMENTS, _PATH, _WHOLE_FILE = 1.0, 0.4, 0.3, 1.0, 0.3
# How much a long piece counts less: half as much as usual, for they are of like length already.
_BODY_LENGTH = 0.5
# Where nothing tells words apart, as in a repo of one file, more of them are still better.
_EACH_WORD = 0.01
_TEST_SHARE, _DOCUMENT_SHARE = 0.6, 0.7
_MOST_REASONS = 6


@dataclass(frozen=True, slots=True)
class Found:
    """A piece that fits a query: where it is, in which content of the file, and why it came."""

    path: str
    blob: str
    first_line: int
    last_line: int
    symbol: str
    score: float
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _File:
    """An indexed file: its content's name, its number among the paths, and the numbers of its pieces."""

    blob: str
    number: int
    pieces: range


@dataclass(frozen=True, slots=True)
class _Extent:
    first_line: int
    last_line: int
    symbol: str


class WorkspaceIndex:
    """Files come, change and go one by one; a search sees those that are in. Not for several threads at once."""

    def __init__(self) -> None:
        self._body = Bm25(b=_BODY_LENGTH)
        self._names, self._comments = Bm25(), Bm25()
        self._paths, self._whole_files = Bm25(), Bm25()  # a file has one number in both
        self._files: dict[str, _File] = {}
        self._extents: list[_Extent] = []  # by piece
        self._file_of = array("i")  # by piece: the number of its path
        self._path_of: list[str] = []  # by number of a path
        self._tests = array("b")
        self._documents = array("b")
        self._known_names: Names | None = None

    def blob_of(self, path: str) -> str:
        """Return the content the file has in the index, empty when it is not in it."""
        held = self._files.get(path)
        return held.blob if held else ""

    def put(self, path: str, blob: str, pieces: Sequence[Piece]) -> None:
        """Take the file in, in place of what was known of it."""
        self.drop(path)
        number = self._paths.add(count_stems(path))
        self._whole_files.add(_sum(piece.body for piece in pieces))
        self._path_of.append(path)
        self._tests.append(is_test(path))
        self._documents.append(is_document(path))
        first = len(self._extents)
        for piece in pieces:
            self._body.add(piece.body)
            self._names.add(piece.names)
            self._comments.add(piece.comments)
            self._extents.append(_Extent(piece.first_line, piece.last_line, piece.symbol))
            self._file_of.append(number)
        self._files[path] = _File(blob, number, range(first, len(self._extents)))
        self._known_names = None

    def drop(self, path: str) -> None:
        """Forget the file, if it is known."""
        held = self._files.pop(path, None)
        if held is None:
            return
        self._paths.remove(held.number)
        self._whole_files.remove(held.number)
        for piece in held.pieces:
            self._body.remove(piece)
            self._names.remove(piece)
            self._comments.remove(piece)
        self._known_names = None

    def search(self, text: str, limit: int) -> list[Found]:
        """Return the best pieces for a query, best first, at most a few of each file."""
        if self._known_names is None:
            self._known_names = Names(self._files)
        query = read_query(text, self._known_names)
        if not self._extents or limit < 1:
            return []
        scores = self._scores(query)
        named = {piece: place for place in query.places if (piece := self._piece_at(place, scores)) is not None}
        chosen = select(scores, self._file_of, list(named), limit)
        return [self._found(each, query, named.get(each.piece)) for each in chosen]

    def _scores(self, query: Query) -> "Scores":
        """Return a score for each piece, 0 where no word hits."""
        import numpy as np

        words = query.stems
        file_of = np.frombuffer(self._file_of, dtype=np.intc)
        mix = _BODY * self._body.scores(words) + _NAMES * self._names.scores(words)
        by_file = _PATH * self._paths.scores(words) + _WHOLE_FILE * self._whole_files.scores(words)
        mix += _COMMENTS * self._comments.scores(words) + by_file[file_of]
        held = self._body.coverage(words) + self._names.coverage(words) + self._paths.coverage(words)[file_of]
        mix = np.where(held > 0, np.maximum(mix, 0.0) + _EACH_WORD * held, 0.0)
        share = np.ones(len(self._path_of))
        if not query.of_tests:
            share[np.frombuffer(self._tests, dtype=np.int8) == 1] *= _TEST_SHARE
        if not query.of_documents:
            share[np.frombuffer(self._documents, dtype=np.int8) == 1] *= _DOCUMENT_SHARE
        scores: Scores = mix * share[file_of]
        return scores

    def _piece_at(self, place: Place, scores: "Scores") -> int | None:
        """Return the piece of the named file that holds the line, or the best one where no line is named."""
        held = self._files[place.path].pieces
        if not held:
            return None
        if not place.line:
            return max(held, key=lambda piece: scores[piece])
        after = bisect_right(held, place.line, key=lambda piece: self._extents[piece].first_line)
        return held[max(after - 1, 0)]

    def _found(self, selection: Selection, query: Query, place: Place | None) -> Found:
        piece = selection.piece
        path = self._path_of[self._file_of[piece]]
        extent = self._extents[piece]
        reasons = self._reasons(piece, query)
        if place is not None:
            reasons.insert(0, path.rsplit("/", 1)[-1] + (f":{place.line}" if place.line else ""))
        return Found(
            path,
            self._files[path].blob,
            extent.first_line,
            extent.last_line,
            extent.symbol,
            round(selection.score, 3),
            tuple(reasons[:_MOST_REASONS]),
        )

    def _reasons(self, piece: int, query: Query) -> list[str]:
        """Return the query's words that hit, best first."""
        fields = (
            (self._body, piece, _BODY),
            (self._names, piece, _NAMES),
            (self._comments, piece, _COMMENTS),
            (self._paths, self._file_of[piece], _PATH),
        )
        shares: dict[str, float] = {}
        for index, number, weight in fields:
            for root, share in index.explain(number, query.stems):
                shares[root] = shares.get(root, 0.0) + weight * share
        return [query.written[root] for root in sorted(shares, key=lambda root: (-shares[root], root))]


def _sum(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for word, times in each.items():
            total[word] = total.get(word, 0) + times
    return total
