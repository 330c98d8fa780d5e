"""Index of notes: BM25 over their words, updated note by note."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.ranking.bm25 import Bm25
from agent_workbench.ranking.postings import build
from agent_workbench.ranking.postings_reader import IndexPart
from agent_workbench.ranking.stems import count_stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

# All notes are indexed anew when more of them than this share, and this number, are in the small part.
_SMALL_SHARE, _SMALL = 8, 64
TITLE_WEIGHT = 3
"""Number of times that a word of the title counts."""


class IndexedNote(Struct, frozen=True):
    """What the index holds of a note: the stamp of its file, its stems with their counts, and its content's hash."""

    stamp: Hashable
    stems: Mapping[str, int]
    sha: str


class WordHit(Struct, frozen=True):
    """A note that contains words of a search: its score, and these words, best first."""

    name: str
    score: float
    words: tuple[str, ...]


class _Part(Struct):
    names: list[str]
    index: IndexPart
    alive: "Mask"


def note_stems(title: str, text: str) -> dict[str, int]:
    """Return the stems of a note with their counts; those of its title count more."""
    counts = count_stems(text)
    for stem, times in count_stems(title).items():
        counts[stem] = counts.get(stem, 0) + TITLE_WEIGHT * times
    return counts


class NoteIndex:
    """Notes by name. A change costs the indexing of the notes that changed lately, not of all. Blocks."""

    def __init__(self) -> None:
        self.notes: dict[str, IndexedNote] = {}
        self._large: _Part | None = None
        self._changed: set[str] = set()
        self._bm25: tuple[Bm25, list[str]] | None = None

    def update(self, changed: Mapping[str, IndexedNote], removed: frozenset[str]) -> None:
        """Put notes in place of those with the same names, and remove others."""
        if not changed and not removed:
            return
        for name in removed:
            self.notes.pop(name, None)
        self.notes.update(changed)
        self._changed |= changed.keys() | removed
        self._bm25 = None

    def search(self, words: str) -> list[WordHit]:
        """Return the notes that contain a word of the search, best first and then by name."""
        stems = count_stems(words)
        if not stems or not self.notes:
            return []
        bm25, names = self._scorer()
        scores = bm25.scores(stems)
        found = scores.nonzero()[0].tolist()
        found.sort(key=lambda row: (-scores[row], names[row]))
        spelled = _spelled(words)
        return [
            WordHit(names[row], float(scores[row]), tuple(spelled.get(stem, stem) for stem in held))
            for row, held in zip(found[:_MOST], self._held(bm25, found[:_MOST], stems), strict=True)
        ]

    @staticmethod
    def _held(bm25: Bm25, rows: list[int], stems: Mapping[str, int]) -> list[list[str]]:
        return [[stem for stem, _ in shares] for shares in bm25.explain_all(rows, stems)]

    def _scorer(self) -> tuple[Bm25, list[str]]:
        """Return the scores of all notes, and the name of each row: a large part, and a small one of recent changes."""
        if self._bm25 is None:
            large = self._large
            if large is None or len(self._changed) > max(_SMALL, len(self.notes) // _SMALL_SHARE):
                large = self._large = self._part(list(self.notes))
                self._changed.clear()
            for row, name in enumerate(large.names):
                if name in self._changed:
                    large.alive[row] = False
            small = self._part([name for name in self.notes if name in self._changed])
            parts = [IndexPart(each.index.vocabulary, each.index.postings, each.alive) for each in (large, small)]
            self._bm25 = Bm25(parts, positive=True), [*large.names, *small.names]
        return self._bm25

    def _part(self, names: list[str]) -> _Part:
        import numpy as np

        vocabulary, (postings,) = build([[self.notes[name].stems for name in names]])
        return _Part(names, IndexPart(vocabulary, postings), np.ones(len(names), bool))


_MOST = 200
"""Number of notes of which the words are told."""


def _spelled(words: str) -> dict[str, str]:
    """Return each stem with the first word of the search that has it."""
    spelled: dict[str, str] = {}
    for word in words.split():
        plain = word.strip(".,;:!?()[]{}\"'`").lower()
        for stem in count_stems(plain):
            spelled.setdefault(stem, plain if plain.isalnum() else stem)
    return spelled
