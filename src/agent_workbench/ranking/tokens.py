"""Tokens of code and prose, whole and in parts, and stems of English words."""

import re
from collections import Counter
from functools import lru_cache

_WORD = re.compile(r"\w+")
_BLANKS = {code: " " for code in range(128) if not _WORD.match(chr(code))}
# Within one word: a run of capitals (`HTTP` of `HTTPServer`), a capitalised or plain word, a number.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# Longer words are encoded data, no names; their beginning is enough to find them.
_LONGEST_WORD = 80
_MEMORY = 1 << 16

_STOP_WORDS = """
a an and are as at be been but by can do does for from had has have how i if in into is it its itself just let me my no
not of on or our own so such than that the their them then there these they this those to too up us very was we were
what when where which while who why will with would you your b c d e f g h j k l m n o p q r s t u v w x y z
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_SHORTEST = 4


def split_identifiers(text: str) -> list[str]:
    """Return the words of `text` in order, lower-cased: each whole, followed by its parts if it has several.

    `parseHTTPHeader2` gives `parsehttpheader2`, `parse`, `http`, `header`, `2`. Underscores, capitals and digits
    separate parts; underscores at either end are ignored. Stop words (`STOP_WORDS`, with single Latin letters) are left
    out. Never raises; no word is empty.
    """
    return [part for word in _words(text) for part in split_word(word)]


def count_identifiers(text: str) -> dict[str, int]:
    """Return the count of each word of `split_identifiers(text)`, without making the list."""
    counts: dict[str, int] = {}
    for word, times in count_words(text).items():
        for part in split_word(word):
            counts[part] = counts.get(part, 0) + times
    return counts


def count_words(text: str) -> Counter[str]:
    """Return the count of each word of `text` as it is written there."""
    return Counter(_words(text))


def _words(text: str) -> list[str]:
    # Equal to the expression for ASCII, and three times as fast.
    return text.translate(_BLANKS).split() if text.isascii() else _WORD.findall(text)


@lru_cache(_MEMORY)
def split_word(word: str) -> tuple[str, ...]:
    """Return the tokens of one word, as in `split_identifiers`."""
    word = word[:_LONGEST_WORD]
    if word.islower() and word.isascii() and word.isalpha():
        return () if word in STOP_WORDS else (word,)
    whole = word.strip("_").lower()
    parts = [part.lower() for part in _PART.findall(word)]
    words = parts if len(parts) < 2 or not whole else [whole, *parts]
    return tuple(part for part in words if part not in STOP_WORDS)


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
