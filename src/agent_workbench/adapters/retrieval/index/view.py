"""Immutable view of an index: the state in which one search runs while updates create other views."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.segments import FIELDS_OF_CHUNKS, Field, Segment
from agent_workbench.ranking.bm25 import K1, B, Bm25
from agent_workbench.ranking.postings_reader import IndexPart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Kinds = NDArray[np.int8]
    Mask = NDArray[np.bool_]


Made = TypeVar("Made")


class ChunkExtent(Struct, frozen=True):
    """Lines of a chunk (from 1, inclusive) and the symbol that it defines or belongs to."""

    first_line: int
    last_line: int
    symbol: str


class IndexView:
    """Segments and masks of their live files. Immutable and thread-safe.

    Files and chunks are numbered from 0 through all segments, including deleted ones, which score 0 in every field. The
    numbers are valid for this view only. Returned arrays must not be changed, except scores.
    """

    def __init__(self, segments: Sequence[Segment] = (), alive: "Sequence[Mask]" = ()) -> None:
        self.segments = tuple(segments)
        self.alive = tuple(alive)  # by segment, then by file
        self._first_files = list(accumulate((len(each.files.kinds) for each in segments), initial=0))
        self._first_chunks = list(accumulate((len(each.extents.first_lines) for each in segments), initial=0))
        self._file_of: Ints | None = None
        self._kinds: Kinds | None = None
        self._live_chunk_masks: Sequence[Mask | None] | None = None
        self._fields: dict[tuple[Field, float, float], Bm25] = {}
        self._made: dict[object, object] = {}

    def cached(self, make: "Callable[[IndexView], Made]") -> Made:
        """Return `make(view)`: computed at the first call and cached for the life of the view."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("Made", self._made[make])

    @property
    def files(self) -> int:
        """Number of live files."""
        return sum(int(mask.sum()) for mask in self.alive)

    @property
    def chunks(self) -> int:
        """Number of chunks of live files."""
        return self._first_chunks[-1] - self.deleted_chunks

    @property
    def deleted_chunks(self) -> int:
        """Number of chunks of deleted files."""
        import numpy as np

        pairs = zip(self.segments, self.alive, strict=True)
        return sum(int(np.diff(segment.files.first_chunks)[~mask].sum()) for segment, mask in pairs)

    def paths(self) -> Iterator[str]:
        """Yield the paths of the live files in order of their numbers."""
        for segment, alive in zip(self.segments, self.alive, strict=True):
            yield from (path for path, lives in zip(segment.files.paths, alive.tolist(), strict=True) if lives)

    def blobs(self) -> Iterator[str]:
        """Yield the blob ids of the live files, in the order of `paths`."""
        for segment, alive in zip(self.segments, self.alive, strict=True):
            yield from (blob for blob, lives in zip(segment.files.blobs, alive.tolist(), strict=True) if lives)

    def number_of(self, path: str) -> int | None:
        """Return the number of the live file at this path, None if there is none."""
        found = self.find(path)
        return None if found is None else self._first_files[found[0]] + found[1]

    def find(self, path: str) -> tuple[int, int] | None:
        """Return the positions of a live file's segment and of the file in it, None if the path is not indexed."""
        for place in range(len(self.segments) - 1, -1, -1):
            local = self.segments[place].files.numbers.get(path)
            if local is not None and self.alive[place][local]:
                return place, local
        return None

    def blob_of(self, path: str) -> str:
        """Return the blob id of the indexed file, empty if it is not indexed."""
        found = self.find(path)
        return "" if found is None else self.segments[found[0]].files.blobs[found[1]]

    def path_of(self, file: int) -> str:
        """Return the path of a file by its number."""
        place = bisect_right(self._first_files, file) - 1
        return self.segments[place].files.paths[file - self._first_files[place]]

    def chunks_of(self, file: int) -> range:
        """Return the numbers of the file's chunks, in order."""
        place = bisect_right(self._first_files, file) - 1
        local, first = file - self._first_files[place], self._first_chunks[place]
        start, end = self.segments[place].files.first_chunks[local : local + 2].tolist()
        return range(first + start, first + end)

    def extent(self, chunk: int) -> ChunkExtent:
        """Return lines and symbol of a chunk."""
        place = bisect_right(self._first_chunks, chunk) - 1
        local, extents = chunk - self._first_chunks[place], self.segments[place].extents
        return ChunkExtent(int(extents.first_lines[local]), int(extents.last_lines[local]), extents.symbols[local])

    @property
    def file_of(self) -> "Ints":
        """Number of the file of each chunk."""
        import numpy as np

        if self._file_of is None:
            numbers = [each.file_of + first for each, first in zip(self.segments, self._first_files, strict=False)]
            self._file_of = np.concatenate([np.zeros(0, np.int32), *numbers], dtype=np.int32)
        return self._file_of

    @property
    def kinds(self) -> "Kinds":
        """The `FileKind` of each file, by number."""
        import numpy as np

        if self._kinds is None:
            self._kinds = np.concatenate([np.zeros(0, np.int8), *(each.files.kinds for each in self.segments)])
        return self._kinds

    def field(self, field: Field, b: float = B, k1: float = K1) -> Bm25:
        """Return the BM25 scorer of one field, over chunks or files.

        `b` (0 to 1) and `k1` (from 0) are the parameters of BM25 for length and repetition.
        """
        found = self._fields.get((field, b, k1))
        if found is None:
            parts = [
                IndexPart(segment.vocabulary, segment.fields[field], alive)
                for segment, alive in zip(self.segments, self._live_masks(field), strict=True)
            ]
            found = self._fields[field, b, k1] = Bm25(parts, b=b, k1=k1)
        return found

    def _live_masks(self, field: Field) -> "Sequence[Mask | None]":
        """Return for each segment the mask of the field's live documents, None if all are."""
        if field not in FIELDS_OF_CHUNKS:
            return [None if mask.all() else mask for mask in self.alive]
        if self._live_chunk_masks is None:
            pairs = zip(self.segments, self.alive, strict=True)
            self._live_chunk_masks = [None if mask.all() else mask[segment.file_of] for segment, mask in pairs]
        return self._live_chunk_masks

    def definers(self, name: str) -> list[int]:
        """Return the chunks that define exactly this name, in order, regardless of case."""
        found: list[int] = self.field(Field.DEFINED).holders(name.lower()).tolist()
        return found
