"""BM25 (Okapi) over documents that come and go, as `rank_bm25.BM25Okapi` scores them."""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
    Counts = NDArray[np.int_]

# Postings of removed documents are dropped when there are more of them than of living ones, and enough to matter.
_WORTH_COMPACTING = 1_000


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found: its number, its score, and the query's words that are in it, best first."""

    index: int
    score: float
    words: tuple[str, ...]


class Bm25:
    """An inverted index: scores equal those of `BM25Okapi` over the same documents, computed only where a word hits.

    Documents are numbered from 0 as they are added; a number is never used again. Not for several threads at once.
    """

    def __init__(self, *, k1: float = 1.5, b: float = 0.75, epsilon: float = 0.25) -> None:
        self._k1, self._b, self._epsilon = k1, b, epsilon
        self._ids: dict[str, int] = {}
        self._holders: list[array[int]] = []  # by word: the documents that hold it, removed ones too
        self._frequencies: list[array[int]] = []  # by word, beside the holders: how often
        self._spread = array("i")  # by word: in how many living documents it is
        self._lengths = array("i")  # by document
        self._words: list[array[int]] = []  # by document: which words it holds; nothing when removed
        self._alive = array("b")
        self._living = 0
        self._removed = 0
        self._total = 0
        self._mean_idf: float | None = None

    def __len__(self) -> int:
        """Return how many documents there are, removed ones left out."""
        return self._living

    def add(self, counts: Mapping[str, int]) -> int:
        """Take in a document given as its words and how often each is in it; return its number."""
        number = len(self._lengths)
        held = array("i")
        for word, times in counts.items():
            word_id = self._ids.get(word)
            if word_id is None:
                word_id = self._new_word(word)
            self._holders[word_id].append(number)
            self._frequencies[word_id].append(times)
            self._spread[word_id] += 1
            held.append(word_id)
        self._words.append(held)
        length = sum(counts.values())
        self._lengths.append(length)
        self._alive.append(1)
        self._living += 1
        self._total += length
        self._mean_idf = None
        return number

    def remove(self, number: int) -> None:
        """Take document `number` out; raises `KeyError` when it is not in."""
        if not (0 <= number < len(self._alive) and self._alive[number]):
            raise KeyError(number)
        for word_id in self._words[number]:
            self._spread[word_id] -= 1
        self._words[number] = array("i")
        self._alive[number] = 0
        self._living -= 1
        self._removed += 1
        self._total -= self._lengths[number]
        self._mean_idf = None
        if self._removed > max(self._living, _WORTH_COMPACTING):
            self._compact()

    def scores(self, words: Iterable[str]) -> "Scores":
        """Return the score of every number given out so far, 0 for removed ones; a word said twice counts twice."""
        import numpy as np

        scores = np.zeros(len(self._lengths))
        for word, times in Counter(words).items():
            word_id = self._ids.get(word)
            if word_id is None or not self._spread[word_id]:
                continue
            holders = np.frombuffer(self._holders[word_id], dtype=np.intc)
            scores[holders] += times * self._idf(word_id) * self._saturation(word_id)
        if self._removed:
            scores[np.frombuffer(self._alive, dtype=np.int8) == 0] = 0.0
        return scores

    def coverage(self, words: Iterable[str]) -> "Counts":
        """Return, for every number given out so far, how many different words of `words` the document holds."""
        import numpy as np

        held = np.zeros(len(self._lengths), dtype=np.int_)
        for word in set(words):
            word_id = self._ids.get(word)
            if word_id is not None:
                held[np.frombuffer(self._holders[word_id], dtype=np.intc)] += 1
        if self._removed:
            held[np.frombuffer(self._alive, dtype=np.int8) == 0] = 0
        return held

    def search(self, words: Sequence[str], limit: int) -> list[Hit]:
        """Return the best `limit` documents that hold a word of `words`, best first; equals in order of number."""
        import numpy as np

        scores = self.scores(words)
        numbers = np.flatnonzero(self.coverage(words))
        best = numbers[np.lexsort((numbers, -scores[numbers]))][: max(limit, 0)]
        return [
            Hit(number, float(scores[number]), tuple(word for word, _ in self.explain(number, words)))
            for number in best.tolist()
        ]

    def explain(self, number: int, words: Iterable[str]) -> list[tuple[str, float]]:
        """Return the words of `words` that document `number` holds, with what each adds to its score, best first."""
        found = []
        for word, times in Counter(words).items():
            word_id = self._ids.get(word)
            if word_id is None or not self._alive[number]:
                continue
            holders = self._holders[word_id]
            place = bisect_left(holders, number)
            if place < len(holders) and holders[place] == number:
                found.append((word, times * self._idf(word_id) * float(self._saturation(word_id, place)[0])))
        return sorted(found, key=lambda word_and_share: (-word_and_share[1], word_and_share[0]))

    def _new_word(self, word: str) -> int:
        word_id = self._ids[word] = len(self._ids)
        self._holders.append(array("i"))
        self._frequencies.append(array("i"))
        self._spread.append(0)
        return word_id

    def _saturation(self, word_id: int, place: int | None = None) -> "Scores":
        """Return, for each holder of the word (or the one at `place`), what its occurrences count: more, ever less."""
        import numpy as np

        wanted = slice(None) if place is None else slice(place, place + 1)
        times = np.frombuffer(self._frequencies[word_id], dtype=np.intc)[wanted]
        holders = np.frombuffer(self._holders[word_id], dtype=np.intc)[wanted]
        lengths = np.frombuffer(self._lengths, dtype=np.intc)[holders]
        relative_length = lengths / (self._total / self._living)
        counted: Scores = times * (self._k1 + 1) / (times + self._k1 * (1 - self._b + self._b * relative_length))
        return counted

    def _idf(self, word_id: int) -> float:
        """Return how telling the word is; one that is in over half of the documents gets a share of the mean."""
        idf = float(self._idfs(self._spread[word_id : word_id + 1])[0])
        if idf >= 0:
            return idf
        if self._mean_idf is None:
            self._mean_idf = float(self._idfs(self._spread).mean())
        return self._epsilon * self._mean_idf

    def _idfs(self, spread: "array[int]") -> "Scores":
        import numpy as np

        documents = np.frombuffer(spread, dtype=np.intc)
        documents = documents[documents > 0]
        idfs: Scores = np.log(self._living - documents + 0.5) - np.log(documents + 0.5)
        return idfs

    def _compact(self) -> None:
        for word_id, holders in enumerate(self._holders):
            living = [place for place, number in enumerate(holders) if self._alive[number]]
            if len(living) < len(holders):
                frequencies = self._frequencies[word_id]
                self._frequencies[word_id] = array("i", (frequencies[place] for place in living))
                self._holders[word_id] = array("i", (holders[place] for place in living))
        self._removed = 0
