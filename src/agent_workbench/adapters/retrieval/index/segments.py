"""Segment of an index: some files with their chunks and postings, immutable once it is built or merged."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from hashlib import sha1
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk
from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex, PackedStrings, pack, take_array, unpack
from agent_workbench.ranking.postings import MergeInput, Postings, build, grouped
from agent_workbench.ranking.postings import merge as merge_postings
from agent_workbench.ranking.tokens import count_stems
from agent_workbench.ranking.vocabulary import IndexVocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]
    Ints = NDArray[np.int32]
    Kinds = NDArray[np.int8]
    Mask = NDArray[np.bool_]


# Separators between a name and its scope in Python, C++ and Ruby.
_QUALIFIERS = re.compile(r"\.|::|#")
_NAME = re.compile(r"\S{1,200}")


def blob_id(data: bytes) -> str:
    """Return git's blob id of this content."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Field(StrEnum):
    """Field in which words are searched: of chunks (the first four) or of files."""

    BODY = "body"
    NAMES = "names"
    COMMENTS = "comments"
    DEFINED = "defined"  # names that a chunk defines: whole, lower-cased, not stemmed
    PATH = "path"
    WHOLE_FILE = "whole_file"


FIELDS_OF_CHUNKS = (Field.BODY, Field.NAMES, Field.COMMENTS, Field.DEFINED)
FIELDS_OF_FILES = (Field.PATH, Field.WHOLE_FILE)
FIELDS = FIELDS_OF_CHUNKS + FIELDS_OF_FILES


class SourceFile(Struct, frozen=True):
    """File to be indexed: path, blob id, kind, and chunks in order."""

    path: str
    blob: str
    kind: FileKind
    chunks: Sequence[IndexedChunk]


class SegmentFiles(Struct, frozen=True, dict=True):
    """Files of a segment by number; file `n` has the chunks `first_chunks[n]` to `first_chunks[n + 1]`."""

    paths: PackedStrings
    blobs: PackedStrings
    kinds: "Kinds"
    first_chunks: "Ints"

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Number of each file by path; of several with one path, the last."""
        return {path: number for number, path in enumerate(self.paths)}

    @cached_property
    def folder_words(self) -> tuple[IndexVocabulary, Postings]:
        """Words of the folder of each file."""
        words = {name: count_stems(name) for name in dict.fromkeys(self.folders)}
        vocabulary, (postings,) = build([[words[name] for name in self.folders]])
        return vocabulary, postings

    @cached_property
    def folders(self) -> Sequence[str]:
        """Folder of each file, empty at the root."""
        return [path.rpartition("/")[0] for path in self.paths]

    def with_name(self, name: str) -> list[str]:
        """Return the files with this name in any folder."""
        return [self.paths[number] for number in self._by_name.get(name, ())]

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for number, path in enumerate(self.paths):
            found.setdefault(path.rpartition("/")[2], []).append(number)
        return found


class ChunkExtents(Struct, frozen=True):
    """Chunks of a segment by number: their lines (from 1, inclusive) and symbols."""

    first_lines: "Ints"
    last_lines: "Ints"
    symbols: PackedStrings


class Segment(Struct, frozen=True, dict=True):
    """Files, their chunks, and the postings of all fields: arrays only, cheap to store, send and map."""

    vocabulary: IndexVocabulary
    fields: "Mapping[Field, Postings]"
    files: SegmentFiles
    extents: ChunkExtents

    @classmethod
    def build(cls, files: Iterable[SourceFile]) -> "Segment":
        """Return the segment of these files.

        A repeated path is in it twice. Raises `ValueError` if a word contains a line end.
        """
        import numpy as np

        some = list(files)
        chunks = [chunk for file in some for chunk in file.chunks]
        first_chunks = np.fromiter(accumulate((len(each.chunks) for each in some), initial=0), np.int32, len(some) + 1)
        vocabulary, (body, names, comments, defined, path) = build(
            [
                [chunk.body for chunk in chunks],
                [chunk.names for chunk in chunks],
                [chunk.comments for chunk in chunks],
                [dict.fromkeys(_defined(chunk.symbol), 1) for chunk in chunks],
                [count_stems(file.path) for file in some],
            ]
        )
        file_of = np.repeat(np.arange(len(some), dtype=np.int32), np.diff(first_chunks))
        whole_file = grouped(body, file_of, len(some))
        return cls(
            vocabulary,
            dict(zip(FIELDS, (body, names, comments, defined, path, whole_file), strict=True)),
            SegmentFiles(
                PackedStrings.of(file.path for file in some),
                PackedStrings.of(file.blob for file in some),
                np.array([file.kind for file in some], np.int8),
                first_chunks,
            ),
            ChunkExtents(
                np.array([chunk.first_line for chunk in chunks], np.int32),
                np.array([chunk.last_line for chunk in chunks], np.int32),
                PackedStrings.of(chunk.symbol for chunk in chunks),
            ),
        )

    @cached_property
    def postings(self) -> int:
        """Number of postings in all fields, a measure of its size."""
        return sum(len(each.rows) for each in self.fields.values())

    @cached_property
    def file_of(self) -> "Ints":
        """Number of the file of each chunk."""
        import numpy as np

        return np.repeat(np.arange(len(self.files.kinds), dtype=np.int32), np.diff(self.files.first_chunks))

    def to_bytes(self) -> bytes:
        """Return the segment as bytes for `from_bytes`."""
        return b"".join(pack(self.arrays()))

    @classmethod
    def from_bytes(cls, buffer: bytes | memoryview) -> "Segment":
        """Return the segment as views of the buffer; raise `DamagedIndex` unless `to_bytes` wrote it."""
        return cls.from_arrays(unpack(buffer))

    def arrays(self, prefix: str = "") -> "dict[str, Array]":
        """Return all arrays of the segment, their names preceded by `prefix`."""
        import numpy as np

        arrays: dict[str, Array] = {"words": np.frombuffer(self.vocabulary.block, np.uint8)}
        arrays["marks"] = self.vocabulary.marks
        for field, postings in self.fields.items():
            arrays |= {f"{field}.starts": postings.starts, f"{field}.rows": postings.rows}
            arrays |= {f"{field}.counts": postings.counts, f"{field}.lengths": postings.lengths}
        for name, texts in (("path", self.files.paths), ("blob", self.files.blobs), ("symbol", self.extents.symbols)):
            arrays |= {f"{name}s": texts.letters, f"{name}s.starts": texts.starts}
        arrays |= {"kinds": self.files.kinds, "first_pieces": self.files.first_chunks}
        arrays |= {"first_lines": self.extents.first_lines, "last_lines": self.extents.last_lines}
        return {prefix + name: array for name, array in arrays.items()}

    @classmethod
    def from_arrays(cls, arrays: "Mapping[str, Array]", prefix: str = "") -> "Segment":
        """Return the segment from the result of `arrays(prefix)`; raise `DamagedIndex` for inconsistent arrays."""
        read = _ArrayReader(arrays, prefix)
        kinds = cast("Kinds", take_array(arrays, f"{prefix}kinds", ("int8",)))
        first_chunks = read.ints("first_pieces", len(kinds) + 1)
        first_lines = read.ints("first_lines", int(first_chunks[-1]))
        starts = read.ints(f"{Field.BODY}.starts")
        words = len(starts) - 1
        vocabulary = IndexVocabulary(read.bytes("words").data, read.ints("marks", -(-words // 64)), words)
        fields = {field: read.postings(field, words, len(first_lines)) for field in FIELDS_OF_CHUNKS}
        fields |= {field: read.postings(field, words, len(kinds)) for field in FIELDS_OF_FILES}
        files = SegmentFiles(read.strings("paths", len(kinds)), read.strings("blobs", len(kinds)), kinds, first_chunks)
        extents = ChunkExtents(
            first_lines, read.ints("last_lines", len(first_lines)), read.strings("symbols", len(first_lines))
        )
        return cls(vocabulary, fields, files, extents)


class _ArrayReader(Struct, frozen=True):
    """Reads arrays by name; raises `DamagedIndex` for one that does not fit the others."""

    arrays: "Mapping[str, Array]"
    prefix: str

    def ints(self, name: str, count: int | None = None) -> "Ints":
        """Return an integer array of length `count` (None: at least 1)."""
        found = cast("Ints", take_array(self.arrays, self.prefix + name, ("int32",), count))
        if count is None and not len(found):
            raise DamagedIndex(f"`{name}` is empty")
        return found

    def bytes(self, name: str) -> "NDArray[np.uint8]":
        """Return a byte array."""
        return cast("NDArray[np.uint8]", take_array(self.arrays, self.prefix + name, ("uint8",)))

    def strings(self, name: str, count: int) -> PackedStrings:
        """Return `count` strings."""
        texts = PackedStrings(self.bytes(name), self.ints(f"{name}.starts", count + 1))
        if texts.starts[-1] != len(texts.letters):
            raise DamagedIndex(f"`{name}` is cut short")
        return texts

    def postings(self, field: Field, words: int, documents: int) -> Postings:
        """Return the postings of a field."""
        starts = self.ints(f"{field}.starts", words + 1)
        size = int(starts[-1])
        counts = take_array(self.arrays, f"{self.prefix}{field}.counts", ("uint8", "uint16", "int32"), size)
        return Postings(
            starts,
            self.ints(f"{field}.rows", size),
            cast("Ints", counts),
            self.ints(f"{field}.lengths", documents),
        )


def _defined(symbol: str) -> Iterator[str]:
    """Yield the names in a symbol as `definers` searches them: for `a.B, a.C` the last parts, `b` and `c`."""
    for name in symbol.lower().split(", "):
        # The common case: one name without separators.
        last = name if name.isidentifier() else _QUALIFIERS.split(name)[-1].strip()
        if _NAME.fullmatch(last):
            yield last


def merge(segments: Sequence[Segment], alive: "Sequence[Mask]") -> Segment:
    """Return one segment with the live files of several, in order; `alive` has a mask over the files of each."""
    import numpy as np

    living_chunks = [mask[segment.file_of] for segment, mask in zip(segments, alive, strict=True)]
    files = list(_renumbered(alive))
    chunks = list(_renumbered(living_chunks))
    shares = [
        MergeInput(
            segment.vocabulary,
            [segment.fields[field] for field in FIELDS],
            [chunk_rows] * len(FIELDS_OF_CHUNKS) + [file_rows] * len(FIELDS_OF_FILES),
        )
        for segment, file_rows, chunk_rows in zip(segments, files, chunks, strict=True)
    ]
    sizes = [sum(int(mask.sum()) for mask in living_chunks)] * len(FIELDS_OF_CHUNKS)
    sizes += [sum(int(mask.sum()) for mask in alive)] * len(FIELDS_OF_FILES)
    vocabulary, merged = merge_postings(shares, sizes)
    per_file = [np.diff(segment.files.first_chunks)[mask] for segment, mask in zip(segments, alive, strict=True)]
    first_chunks = np.zeros(sum(map(len, per_file)) + 1, np.int32)
    np.cumsum(np.concatenate(per_file), out=first_chunks[1:])

    def lines(of: "Sequence[Ints]") -> "Ints":
        return np.concatenate([array[mask] for array, mask in zip(of, living_chunks, strict=True)])

    return Segment(
        vocabulary,
        dict(zip(FIELDS, merged, strict=True)),
        SegmentFiles(
            PackedStrings.joined([segment.files.paths for segment in segments], alive),
            PackedStrings.joined([segment.files.blobs for segment in segments], alive),
            np.concatenate([segment.files.kinds[mask] for segment, mask in zip(segments, alive, strict=True)]),
            first_chunks,
        ),
        ChunkExtents(
            lines([segment.extents.first_lines for segment in segments]),
            lines([segment.extents.last_lines for segment in segments]),
            PackedStrings.joined([segment.extents.symbols for segment in segments], living_chunks),
        ),
    )


def _renumbered(alive: "Sequence[Mask]") -> "Iterator[Ints]":
    """Yield for each mask the new numbers of its live entries (-1: deleted), numbered through all masks."""
    import numpy as np

    first = 0
    for mask in alive:
        numbers = np.where(mask, first + np.cumsum(mask, dtype=np.int32) - 1, -1).astype(np.int32)
        first += int(mask.sum())
        yield numbers
