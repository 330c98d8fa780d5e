"""Small repos of words for the tests of vectors."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha1

import numpy as np

from agent_workbench.adapters.retrieval.vectors.corpus import Corpus, starts_of

# `invoice` and `bill` never stand in one file, but keep the same company; so do `kite` and `glider`.
_TOPICS = {
    "money": ["invoice", "bill", "customer", "payment", "tax", "amount", "currency"],
    "flight": ["kite", "glider", "wind", "wing", "lift", "altitude", "pilot"],
}


def corpus(files: Mapping[str, Sequence[str]]) -> Corpus:
    """Return the corpus of these files, given by path as their words."""
    held: dict[str, list[tuple[int, int]]] = {}
    for number, words in enumerate(files.values()):
        for word, times in Counter(words).items():
            held.setdefault(word, []).append((number, times))
    words = sorted(held)
    places = [place for word in words for place in held[word]]
    rows, counts = (np.array([place[axis] for place in places], dtype=np.int32) for axis in (0, 1))
    blobs = [sha1(" ".join(each).encode()).hexdigest() for each in files.values()]
    starts = starts_of(np.array([len(held[word]) for word in words]))
    return Corpus(list(files), blobs, words, starts, rows, counts)


def topics(count: int = 40, salt: str = "") -> dict[str, list[str]]:
    """Return files of two topics, in which the first two words of each never meet."""
    random = np.random.default_rng(7)
    files = {}
    for number in range(count):
        topic = list(_TOPICS)[number % 2]
        first, second, *others = _TOPICS[topic]
        company = random.choice(others, 4, replace=False).tolist()
        files[f"{topic}/{number}.py"] = [
            second if number % 4 < 2 else first,
            *company,
            f"own{number // 2}",
            salt or "x",
        ]
    return files
