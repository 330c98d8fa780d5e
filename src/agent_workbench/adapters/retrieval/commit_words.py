"""Searchable content of commits: the paths they touched, and the word counts of their messages."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.retrieval import PastCommit
from agent_workbench.ranking.stems import count_stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Mask = NDArray[np.bool_]

MAX_COMMITS = 5_000
MAX_CHARS = 2_000
# A commit that touches more files says nothing about each of them.
MAX_FILES = 20
# Trailers, addresses and numbers of issues: what tools and customs add to a message.
_NOISE = re.compile(
    r"^[ \t]*[A-Za-z][\w-]{1,30}-by: .*$|^[ \t]*(?:change-id|cc)[ \t]*:.*$|https?://\S{1,2000}|\(?#\d{1,9}\)?",
    re.MULTILINE | re.IGNORECASE,
)


class TextWords(Struct, frozen=True):
    """Word counts of several texts: text `n` has the next `sizes[n]` entries of `words` and `counts`.

    `words` are positions in the words of the `CountedCommits` that holds them.
    """

    sizes: "Ints"
    words: "Ints"
    counts: "Ints"

    @classmethod
    def of(cls, texts: Sequence[Mapping[str, int]], number_of: Mapping[str, int]) -> "TextWords":
        """Return the word counts of these texts as arrays."""
        import numpy as np

        sizes = np.fromiter(map(len, texts), np.int32, len(texts))
        total = int(sizes.sum())
        words = np.fromiter(map(number_of.__getitem__, chain.from_iterable(texts)), np.int32, total)
        counts = np.fromiter(chain.from_iterable(each.values() for each in texts), np.int32, total)
        return cls(sizes, words, counts)

    def concatenated(self, other: "TextWords") -> "TextWords":
        """Return these texts followed by `other`, which has the same word numbers."""
        import numpy as np

        return TextWords(
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.words, other.words]),
            np.concatenate([self.counts, other.counts]),
        )

    def only(self, kept: "Mask") -> "TextWords":
        """Return the texts that the mask selects."""
        import numpy as np

        entries = np.repeat(kept, self.sizes)
        return TextWords(self.sizes[kept], self.words[entries], self.counts[entries])

    def renumbered(self, numbers: "Ints") -> "TextWords":
        """Return the texts with each word number `n` replaced by `numbers[n]`."""
        return TextWords(self.sizes, numbers[self.words], self.counts)


class CountedCommits(Struct, frozen=True, eq=False):
    """Commits, newest first, and their sorted `words`.

    A commit that touched no file or too many has neither `paths` nor words.
    """

    ids: tuple[CommitId, ...]
    paths: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    messages: TextWords
    titles: TextWords

    def concatenated(self, older: "CountedCommits") -> "CountedCommits":
        """Return these commits followed by the older ones not among them, `MAX_COMMITS` at most."""
        import numpy as np

        here = set(self.ids)
        kept = np.array([commit not in here for commit in older.ids], bool)
        kept &= np.cumsum(kept) + len(self.ids) <= MAX_COMMITS
        places = np.flatnonzero(kept).tolist()
        number_of = {word: number for number, word in enumerate(dict.fromkeys((*self.words, *older.words)))}
        numbers = np.array([number_of[word] for word in older.words], np.int32)
        messages = self.messages.concatenated(older.messages.only(kept).renumbered(numbers))
        titles = self.titles.concatenated(older.titles.only(kept).renumbered(numbers))
        said = set(messages.words.tolist()).union(titles.words.tolist())
        words = sorted(word for word, number in number_of.items() if number in said)
        numbers = np.zeros(len(number_of), np.int32)
        numbers[[number_of[word] for word in words]] = np.arange(len(words))
        return CountedCommits(
            self.ids + tuple(older.ids[place] for place in places),
            self.paths + tuple(older.paths[place] for place in places),
            tuple(words),
            messages.renumbered(numbers),
            titles.renumbered(numbers),
        )


def without_trailers(text: str) -> str:
    """Return a message without trailers (`Signed-off-by`), URLs and numbers of issues."""
    return _NOISE.sub(" ", text)


def title_of(message: str) -> str:
    """Return the first line of a message, without noise."""
    return without_trailers(message).strip().partition("\n")[0]


def count_commits(commits: Iterable[PastCommit]) -> CountedCommits:
    """Return the word counts of the newest `MAX_COMMITS` commits. Blocks for up to two seconds."""
    some = tuple(commits)[:MAX_COMMITS]
    paths = tuple(each.paths if len(each.paths) <= MAX_FILES else () for each in some)
    texts = [each.message[:MAX_CHARS] if touched else "" for each, touched in zip(some, paths, strict=True)]
    messages = [count_stems(without_trailers(text)) for text in texts]
    titles = [count_stems(title_of(text)) for text in texts]
    words = tuple(sorted(set(chain.from_iterable(chain(messages, titles)))))
    number_of = {word: number for number, word in enumerate(words)}
    return CountedCommits(
        tuple(each.id for each in some),
        paths,
        words,
        TextWords.of(messages, number_of),
        TextWords.of(titles, number_of),
    )
