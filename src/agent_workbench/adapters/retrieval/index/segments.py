"""A segment: the index of some files, whole in itself, that never changes once it is made."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from agent_workbench.adapters.retrieval.chunking.chunks import Piece
from agent_workbench.adapters.retrieval.index.file_kinds import Kind
from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex, pack, take, unpack
from agent_workbench.adapters.retrieval.index.strings import Strings
from agent_workbench.ranking.postings import Postings, build, grouped
from agent_workbench.ranking.stems import count_stems
from agent_workbench.ranking.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]
    Ints = NDArray[np.int32]
    Kinds = NDArray[np.int8]
    Mask = NDArray[np.bool_]

# What stands between a name and what it is defined in: Python, C++, Ruby.
_QUALIFIERS = re.compile(r"\.|::|#")
_NAME = re.compile(r"\S{1,200}")


class Field(StrEnum):
    """Where words are looked for: in pieces (the first four) or in files."""

    BODY = "body"
    NAMES = "names"
    COMMENTS = "comments"
    DEFINED = "defined"  # the names that a piece defines: whole, lower-cased, not stemmed
    PATH = "path"
    WHOLE_FILE = "whole_file"


FIELDS_OF_PIECES = (Field.BODY, Field.NAMES, Field.COMMENTS, Field.DEFINED)
FIELDS_OF_FILES = (Field.PATH, Field.WHOLE_FILE)
FIELDS = FIELDS_OF_PIECES + FIELDS_OF_FILES


class SourceFile(Struct, frozen=True):
    """A file to be indexed: where it is, the name of its content, and what it was cut into, in order."""

    path: str
    blob: str
    kind: Kind
    pieces: Sequence[Piece]


class Files(Struct, frozen=True, dict=True):
    """The files of a segment, by number; file `n` has the pieces `first_pieces[n]` to `first_pieces[n + 1]`."""

    paths: Strings
    blobs: Strings
    kinds: "Kinds"
    first_pieces: "Ints"

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The files by path; of several with one path, the last."""
        return {path: number for number, path in enumerate(self.paths)}

    @cached_property
    def folder_words(self) -> tuple[Vocabulary, Postings]:
        """By file, the words of its folder."""
        folders = [path.rpartition("/")[0] for path in self.paths]
        words = {name: count_stems(name) for name in dict.fromkeys(folders)}
        vocabulary, (postings,) = build([[words[name] for name in folders]])
        return vocabulary, postings

    def called(self, name: str) -> list[str]:
        """Return the files whose path ends in this name."""
        return [self.paths[number] for number in self._by_name.get(name, ())]

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for number, path in enumerate(self.paths):
            found.setdefault(path.rpartition("/")[2], []).append(number)
        return found


class Extents(Struct, frozen=True):
    """The pieces of a segment, by number: their lines (from 1, inclusive) and symbols."""

    first_lines: "Ints"
    last_lines: "Ints"
    symbols: Strings


class Segment(Struct, frozen=True, dict=True):
    """Files, their pieces, and their words in all fields. Arrays only: to store, send or map it costs nothing."""

    vocabulary: Vocabulary
    fields: "Mapping[Field, Postings]"
    files: Files
    extents: Extents

    @classmethod
    def build(cls, files: Iterable[SourceFile]) -> "Segment":
        """Index these files; a path given twice is in it twice. Raises `ValueError` when a word holds a line end."""
        import numpy as np

        some = list(files)
        pieces = [piece for file in some for piece in file.pieces]
        first_pieces = np.fromiter(accumulate((len(each.pieces) for each in some), initial=0), np.int32, len(some) + 1)
        vocabulary, (body, names, comments, defined, path) = build(
            [
                [piece.body for piece in pieces],
                [piece.names for piece in pieces],
                [piece.comments for piece in pieces],
                [dict.fromkeys(_defined(piece.symbol), 1) for piece in pieces],
                [count_stems(file.path) for file in some],
            ]
        )
        file_of = np.repeat(np.arange(len(some), dtype=np.int32), np.diff(first_pieces))
        whole_file = grouped(body, file_of, len(some))
        return cls(
            vocabulary,
            dict(zip(FIELDS, (body, names, comments, defined, path, whole_file), strict=True)),
            Files(
                Strings.of(file.path for file in some),
                Strings.of(file.blob for file in some),
                np.array([file.kind for file in some], np.int8),
                first_pieces,
            ),
            Extents(
                np.array([piece.first_line for piece in pieces], np.int32),
                np.array([piece.last_line for piece in pieces], np.int32),
                Strings.of(piece.symbol for piece in pieces),
            ),
        )

    @cached_property
    def postings(self) -> int:
        """How large it is: the number of its postings in all fields."""
        return sum(len(each.rows) for each in self.fields.values())

    @cached_property
    def file_of(self) -> "Ints":
        """The number of the file, by piece."""
        import numpy as np

        return np.repeat(np.arange(len(self.files.kinds), dtype=np.int32), np.diff(self.files.first_pieces))

    def to_bytes(self) -> bytes:
        """Return all of it, for `from_bytes`."""
        return b"".join(pack(self.arrays()))

    @classmethod
    def from_bytes(cls, buffer: bytes | memoryview) -> "Segment":
        """Return the segment over the buffer itself; raises `DamagedIndex` where it is not what `to_bytes` gave."""
        return cls.from_arrays(unpack(buffer))

    def arrays(self, prefix: str = "") -> "dict[str, Array]":
        """Return all it is made of, each name with `prefix` before it."""
        import numpy as np

        arrays: dict[str, Array] = {"words": np.frombuffer(self.vocabulary.block, np.uint8)}
        arrays["marks"] = self.vocabulary.marks
        for field, postings in self.fields.items():
            arrays |= {f"{field}.starts": postings.starts, f"{field}.rows": postings.rows}
            arrays |= {f"{field}.counts": postings.counts, f"{field}.lengths": postings.lengths}
        for name, texts in (("path", self.files.paths), ("blob", self.files.blobs), ("symbol", self.extents.symbols)):
            arrays |= {f"{name}s": texts.letters, f"{name}s.starts": texts.starts}
        arrays |= {"kinds": self.files.kinds, "first_pieces": self.files.first_pieces}
        arrays |= {"first_lines": self.extents.first_lines, "last_lines": self.extents.last_lines}
        return {prefix + name: array for name, array in arrays.items()}

    @classmethod
    def from_arrays(cls, arrays: "Mapping[str, Array]", prefix: str = "") -> "Segment":
        """Return the segment of which `arrays(prefix)` gave these; raises `DamagedIndex` where they do not fit."""
        read = _Reader(arrays, prefix)
        kinds = cast("Kinds", take(arrays, f"{prefix}kinds", ("int8",)))
        first_pieces = read.ints("first_pieces", len(kinds) + 1)
        first_lines = read.ints("first_lines", int(first_pieces[-1]))
        starts = read.ints(f"{Field.BODY}.starts")
        words = len(starts) - 1
        vocabulary = Vocabulary(read.bytes("words").data, read.ints("marks", -(-words // 64)), words)
        fields = {field: read.postings(field, words, len(first_lines)) for field in FIELDS_OF_PIECES}
        fields |= {field: read.postings(field, words, len(kinds)) for field in FIELDS_OF_FILES}
        files = Files(read.strings("paths", len(kinds)), read.strings("blobs", len(kinds)), kinds, first_pieces)
        extents = Extents(
            first_lines, read.ints("last_lines", len(first_lines)), read.strings("symbols", len(first_lines))
        )
        return cls(vocabulary, fields, files, extents)


class _Reader(Struct, frozen=True):
    """Takes arrays by name; raises `DamagedIndex` where one does not fit the others."""

    arrays: "Mapping[str, Array]"
    prefix: str

    def ints(self, name: str, count: int | None = None) -> "Ints":
        """Return numbers; `count` (None: at least one) says how many there must be."""
        found = cast("Ints", take(self.arrays, self.prefix + name, ("int32",), count))
        if count is None and not len(found):
            raise DamagedIndex(f"`{name}` is empty")
        return found

    def bytes(self, name: str) -> "NDArray[np.uint8]":
        """Return letters."""
        return cast("NDArray[np.uint8]", take(self.arrays, self.prefix + name, ("uint8",)))

    def strings(self, name: str, count: int) -> Strings:
        """Return `count` texts."""
        texts = Strings(self.bytes(name), self.ints(f"{name}.starts", count + 1))
        if texts.starts[-1] != len(texts.letters):
            raise DamagedIndex(f"`{name}` is cut short")
        return texts

    def postings(self, field: Field, words: int, documents: int) -> Postings:
        """Return the postings of a field."""
        starts = self.ints(f"{field}.starts", words + 1)
        size = int(starts[-1])
        counts = take(self.arrays, f"{self.prefix}{field}.counts", ("uint8", "uint16", "int32"), size)
        return Postings(
            starts,
            self.ints(f"{field}.rows", size),
            cast("Ints", counts),
            self.ints(f"{field}.lengths", documents),
        )


def _defined(symbol: str) -> Iterator[str]:
    """Yield the names in a symbol as `definers` looks for them: of `a.B, a.C` the last parts, `b` and `c`."""
    for name in symbol.lower().split(", "):
        # Most names are plain, and there is one for each piece.
        last = name if name.isidentifier() else _QUALIFIERS.split(name)[-1].strip()
        if _NAME.fullmatch(last):
            yield last
