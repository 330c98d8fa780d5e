"""What a search sees of a workspace's index: a state of it that stays as it is while others are made."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.segments import FIELDS_OF_PIECES, Field, Segment
from agent_workbench.ranking.bm25 import K1, B, Bm25
from agent_workbench.ranking.postings import Share, merge
from agent_workbench.ranking.postings_reader import Part
from agent_workbench.ranking.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Kinds = NDArray[np.int8]
    Mask = NDArray[np.bool_]


Made = TypeVar("Made")


class Extent(Struct, frozen=True):
    """Where a piece is in its file (lines from 1, inclusive) and what it defines or is part of."""

    first_line: int
    last_line: int
    symbol: str


class Matrix(Struct, frozen=True):
    """How often each word is in each living file: word `w` is in `files[starts[w]:starts[w + 1]]`, `counts` beside."""

    words: Vocabulary
    starts: "Ints"
    files: "Ints"
    counts: "NDArray[np.generic]"


class IndexView:
    """Segments, and which of their files are alive. Never changes, so that any thread may search it.

    Files and pieces are numbered from 0 through all segments, dead ones too, which score 0 in every field. Numbers mean
    nothing to another view. Arrays that it returns are its own and not to be changed, but for scores.
    """

    def __init__(self, segments: Sequence[Segment] = (), alive: "Sequence[Mask]" = ()) -> None:
        self.segments = tuple(segments)
        self.alive = tuple(alive)  # by segment, then by file
        self._first_files = list(accumulate((len(each.files.kinds) for each in segments), initial=0))
        self._first_pieces = list(accumulate((len(each.extents.first_lines) for each in segments), initial=0))
        self._file_of: Ints | None = None
        self._kinds: Kinds | None = None
        self._alive_pieces: Sequence[Mask | None] | None = None
        self._fields: dict[tuple[Field, float, float], Bm25] = {}
        self._made: dict[object, object] = {}

    def once(self, make: "Callable[[IndexView], Made]") -> Made:
        """Return what `make` makes of the view: made at the first call, kept as long as the view lives."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("Made", self._made[make])

    @property
    def files(self) -> int:
        """How many files are alive."""
        return sum(int(mask.sum()) for mask in self.alive)

    @property
    def pieces(self) -> int:
        """How many pieces the living files have."""
        return self._first_pieces[-1] - self.dead_pieces

    @property
    def dead_pieces(self) -> int:
        """How many pieces there are besides."""
        import numpy as np

        pairs = zip(self.segments, self.alive, strict=True)
        return sum(int(np.diff(segment.files.first_pieces)[~mask].sum()) for segment, mask in pairs)

    def paths(self) -> Iterator[str]:
        """Yield the paths of the living files, by number."""
        for segment, alive in zip(self.segments, self.alive, strict=True):
            yield from (path for path, lives in zip(segment.files.paths, alive.tolist(), strict=True) if lives)

    def blobs(self) -> Iterator[str]:
        """Yield beside `paths` the contents of the living files."""
        for segment, alive in zip(self.segments, self.alive, strict=True):
            yield from (blob for blob, lives in zip(segment.files.blobs, alive.tolist(), strict=True) if lives)

    def number_of(self, path: str) -> int | None:
        """Return the number of the living file with this path, None when there is none."""
        found = self.find(path)
        return None if found is None else self._first_files[found[0]] + found[1]

    def find(self, path: str) -> tuple[int, int] | None:
        """Return the segment that holds the living file with this path and its number there, None when none does."""
        for place in range(len(self.segments) - 1, -1, -1):
            local = self.segments[place].files.numbers.get(path)
            if local is not None and self.alive[place][local]:
                return place, local
        return None

    def blob_of(self, path: str) -> str:
        """Return the content the file has in the index, empty when it is not in it."""
        found = self.find(path)
        return "" if found is None else self.segments[found[0]].files.blobs[found[1]]

    def path_of(self, file: int) -> str:
        """Return the path of a file by its number."""
        place = bisect_right(self._first_files, file) - 1
        return self.segments[place].files.paths[file - self._first_files[place]]

    def pieces_of(self, file: int) -> range:
        """Return the numbers of the file's pieces, in order."""
        place = bisect_right(self._first_files, file) - 1
        local, first = file - self._first_files[place], self._first_pieces[place]
        start, end = self.segments[place].files.first_pieces[local : local + 2].tolist()
        return range(first + start, first + end)

    def extent(self, piece: int) -> Extent:
        """Return where a piece is and what it is called."""
        place = bisect_right(self._first_pieces, piece) - 1
        local, extents = piece - self._first_pieces[place], self.segments[place].extents
        return Extent(int(extents.first_lines[local]), int(extents.last_lines[local]), extents.symbols[local])

    @property
    def file_of(self) -> "Ints":
        """The number of its file, by piece."""
        import numpy as np

        if self._file_of is None:
            numbers = [each.file_of + first for each, first in zip(self.segments, self._first_files, strict=False)]
            self._file_of = np.concatenate([np.zeros(0, np.int32), *numbers], dtype=np.int32)
        return self._file_of

    @property
    def kinds(self) -> "Kinds":
        """The `Kind` of each file, by number."""
        import numpy as np

        if self._kinds is None:
            self._kinds = np.concatenate([np.zeros(0, np.int8), *(each.files.kinds for each in self.segments)])
        return self._kinds

    def field(self, field: Field, b: float = B, k1: float = K1) -> Bm25:
        """Return the scores of one field, by piece or by file.

        `b` is how much length counts there, 0 to 1; `k1` how much more a word says that is there often, from 0 on.
        """
        found = self._fields.get((field, b, k1))
        if found is None:
            parts = [
                Part(segment.vocabulary, segment.fields[field], alive)
                for segment, alive in zip(self.segments, self._alive_in(field), strict=True)
            ]
            found = self._fields[field, b, k1] = Bm25(parts, b=b, k1=k1)
        return found

    def _alive_in(self, field: Field) -> "Sequence[Mask | None]":
        """Return by segment which documents of the field are alive, None where all are."""
        if field not in FIELDS_OF_PIECES:
            return [None if mask.all() else mask for mask in self.alive]
        if self._alive_pieces is None:
            pairs = zip(self.segments, self.alive, strict=True)
            self._alive_pieces = [None if mask.all() else mask[segment.file_of] for segment, mask in pairs]
        return self._alive_pieces

    def definers(self, name: str) -> list[int]:
        """Return the pieces whose symbol ends in exactly this name, in order; capitals make no difference."""
        found: list[int] = self.field(Field.DEFINED).holders(name.lower()).tolist()
        return found

    def matrix(self) -> Matrix:
        """Return the words of the living files, made anew at each call."""
        import numpy as np

        shares = []
        for segment, alive, first in zip(self.segments, self.alive, self._first_files, strict=False):
            rows = np.where(alive, np.arange(first, first + len(alive)), -1).astype(np.int32)
            shares.append(Share(segment.vocabulary, [segment.fields[Field.WHOLE_FILE]], [rows]))
        vocabulary, (postings,) = merge(shares, [self._first_files[-1]])
        return Matrix(vocabulary, postings.starts, postings.rows, postings.counts)
