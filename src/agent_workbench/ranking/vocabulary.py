"""Vocabulary of an index: sorted words in one block of memory, without a Python object for each."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Marks = NDArray[np.int32]

# Words between two marks: a trade between the time to search them and the number of marks.
_STRIDE = 64
_MAX_CACHED = 4_096
# Words are merged in blocks of this size; a block holds the interpreter lock.
_UNITED_AT_ONCE = 8_192
_SEPARATOR = b"\n"


class IndexVocabulary:
    """Words numbered from 0 in byte order. `block` and `marks` are all its data.

    The block holds each word in UTF-8 between two line ends. The marks are the offsets of every 64th word.
    """

    def __init__(self, block: "memoryview | bytes", marks: "Marks", size: int) -> None:
        self.block = memoryview(block)
        self.marks = marks
        self._size = size
        self._heads: list[bytes] | None = None
        self._known: dict[str, int] = {}
        self._recent: tuple[tuple[str, ...], Marks] | None = None

    @classmethod
    def of(cls, words: Sequence[bytes]) -> "IndexVocabulary":
        """Return the vocabulary of distinct words in order; raise `ValueError` for a word that contains a line end."""
        import numpy as np

        block = _SEPARATOR.join((b"", *words, b"")) if words else _SEPARATOR
        if block.count(_SEPARATOR) != len(words) + 1:
            raise ValueError("a word of an index holds a line end")
        sizes = np.fromiter(map(len, words), np.int32, len(words))
        ends = np.cumsum(sizes + 1, dtype=np.int32)
        return cls(block, (ends - sizes - 1)[::_STRIDE].copy(), len(words))

    def __len__(self) -> int:
        """Return the number of words."""
        return self._size

    def __iter__(self) -> Iterator[str]:
        """Yield the words in order."""
        return (word.decode("utf-8", "surrogatepass") for word in self.encoded())

    def encoded(self) -> list[bytes]:
        """Return all words in order, as they are stored."""
        return bytes(self.block[1:-1]).split(_SEPARATOR) if self._size else []

    def find(self, word: str) -> int:
        """Return the number of the word, -1 for an unknown one."""
        number = self._known.get(word)
        if number is None:
            number = self._search(word.encode("utf-8", "surrogatepass"))
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            self._known[word] = number
        return number

    def find_all(self, words: tuple[str, ...]) -> "Marks":
        """Return the numbers of the words, -1 for unknown ones."""
        import numpy as np

        recent = self._recent
        if recent is None or recent[0] != words:
            # The words of one query are looked up in several fields.
            recent = self._recent = words, np.array([self.find(word) for word in words], np.int32)
        return recent[1]

    def _search(self, word: bytes) -> int:
        if self._heads is None:
            self._heads = [self._head(mark) for mark in self.marks.tolist()]
        between = bisect_right(self._heads, word) - 1
        if between < 0 or _SEPARATOR in word:
            return -1
        start = int(self.marks[between])
        end = int(self.marks[between + 1]) + 1 if between + 1 < len(self._heads) else len(self.block)
        some = bytes(self.block[start:end])
        place = some.find(_SEPARATOR + word + _SEPARATOR)
        return -1 if place < 0 else between * _STRIDE + some.count(_SEPARATOR, 0, place)

    def _head(self, mark: int) -> bytes:
        length = 64
        while _SEPARATOR not in (some := bytes(self.block[mark + 1 : mark + 1 + length])):
            length *= 4
        return some.partition(_SEPARATOR)[0]


def union(
    vocabularies: Sequence[IndexVocabulary], used: "Sequence[NDArray[np.bool_]]"
) -> "tuple[IndexVocabulary, list[Marks]]":
    """Return the union of several vocabularies, and for each of them the new numbers of its words (-1: unused).

    `used` is a mask over the words of each vocabulary.
    """
    import numpy as np

    lists = []
    for vocabulary, wanted in zip(vocabularies, used, strict=True):
        words = vocabulary.encoded()
        lists.append(words if wanted.all() else [words[number] for number in np.flatnonzero(wanted).tolist()])
    maps = [np.full(len(vocabulary), -1, np.int32) for vocabulary in vocabularies]
    places = [np.flatnonzero(wanted) for wanted in used]
    merged: list[bytes] = []
    starts = [0] * len(lists)
    for end_word in [*max(lists, key=len, default=[])[_UNITED_AT_ONCE::_UNITED_AT_ONCE], None]:
        ends = [
            len(words) if end_word is None else bisect_left(words, end_word, start)
            for words, start in zip(lists, starts, strict=True)
        ]
        some = [words[start:end] for words, start, end in zip(lists, starts, ends, strict=True)]
        # The sort recognises the ordered runs and merges them in linear time.
        fresh = dict.fromkeys(sorted(chain.from_iterable(some)))
        number_of = dict(zip(fresh, range(len(merged), len(merged) + len(fresh)), strict=True))
        for numbers, place, words, start, end in zip(maps, places, some, starts, ends, strict=True):
            numbers[place[start:end]] = np.fromiter(map(number_of.__getitem__, words), np.int32, len(words))
        merged += fresh
        starts = ends
    return IndexVocabulary.of(merged), maps
