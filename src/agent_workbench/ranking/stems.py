"""Stems of English words: `parses`, `parsed` and `parsing` have the same one."""

from functools import lru_cache

from agent_workbench.ranking.tokens import count_words, split_word

_MEMORY = 1 << 16
_SHORTEST = 4


@lru_cache(_MEMORY)
def stem(word: str) -> str:
    """Return a lower-case word without plural `s`, `-ed` or `-ing`.

    A word with other characters than ASCII letters is returned unchanged. Stems are compared, never shown.
    """
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    return _without_final_e(_without_ending(_singular(word)))


def count_stems(text: str) -> dict[str, int]:
    """Return the count of each stem in a text: of whole identifiers and of their parts."""
    counts: dict[str, int] = {}
    for word, times in count_words(text).items():
        for root in _stems_of(word):
            counts[root] = counts.get(root, 0) + times
    return counts


@lru_cache(_MEMORY)
def _stems_of(word: str) -> tuple[str, ...]:
    """Return the stems of a word and of its parts."""
    return tuple(map(stem, split_word(word)))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > _SHORTEST:
        return word[:-3] + "y"
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        # In `string` and `speed` the ending is no suffix.
        if rest != word and len(rest) > 2 and not word.endswith("eed") and any(letter in "aeiouy" for letter in rest):
            doubled = rest[-1] == rest[-2] and rest[-1] not in "lsz"
            return rest[:-1] if doubled else rest
    return word


def _without_final_e(word: str) -> str:
    return word[:-1] if word.endswith("e") and len(word) > _SHORTEST else word
