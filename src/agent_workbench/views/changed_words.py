"""Words that differ between a removed line and the added line that replaces it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

Spans = tuple[tuple[int, int], ...]
"""Parts of a line as start and end indices, end exclusive."""

_MAX_ALIKE = 400
_MIN_ALIKE = 0.5
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_MAX_CHARS = 4000
_MAX_PAIRS = 20_000
_MIN_SHARED = 0.35


def changed_words(old: str, new: str) -> tuple[Spans, Spans]:
    """Return the spans in which two lines differ; none if they share too little.

    Time is bounded: beyond some length only the shared ends are found, or nothing.
    """
    if old == new or len(old) > _MAX_CHARS or len(new) > _MAX_CHARS:
        return (), ()
    left, right = _WORD.findall(old), _WORD.findall(new)
    head, tail = _shared_ends(left, right)
    pairs = [(0, 0, head), *_shared_inside(left, right, head, tail), (len(left) - tail, len(right) - tail, tail)]
    shared = sum(len(word) for at, _, size in pairs for word in left[at : at + size] if not word.isspace())
    longest = max(_solid(left), _solid(right))
    if not longest or shared / longest < _MIN_SHARED:
        return (), ()
    kept_left = {at + step for at, _, size in pairs for step in range(size)}
    kept_right = {at + step for _, at, size in pairs for step in range(size)}
    return tuple(_spans(left, kept_left)), tuple(_spans(right, kept_right))


def similar_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs of the most similar old and new lines, both in order. Equal counts are paired one by one."""
    if len(old) == len(new) or len(old) * len(new) > _MAX_ALIKE:
        yield from ((number, number) for number in range(min(len(old), len(new))))
        return
    new_words = [Counter(_words(line)) for line in new]
    begin = 0
    for number, line in enumerate(old):
        words = Counter(_words(line))
        found = [(_likeness(words, other), -at) for at, other in enumerate(new_words) if at >= begin]
        best, at = max(found, default=(0.0, 0))
        if best >= _MIN_ALIKE:
            yield number, -at
            begin = 1 - at


def _words(line: str) -> list[str]:
    return [word for word in _WORD.findall(line[:_MAX_CHARS]) if not word.isspace()]


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _solid(words: Sequence[str]) -> int:
    return sum(len(word) for word in words if not word.isspace())


def _shared_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal words at the beginning and, after these, at the end."""
    limit = min(len(left), len(right))
    head = tail = 0
    while head < limit and left[head] == right[head]:
        head += 1
    while tail < limit - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    return head, tail


def _shared_inside(left: list[str], right: list[str], head: int, tail: int) -> Iterator[tuple[int, int, int]]:
    inner_left, inner_right = left[head : len(left) - tail], right[head : len(right) - tail]
    if not inner_left or not inner_right or len(inner_left) * len(inner_right) > _MAX_PAIRS:
        return
    from difflib import SequenceMatcher

    for block in SequenceMatcher(None, inner_left, inner_right, autojunk=False).get_matching_blocks():
        # A shared space between two changed words does not separate them.
        if block.size > 1 or (block.size and not inner_left[block.a].isspace()):
            yield head + block.a, head + block.b, block.size


def _spans(words: Sequence[str], kept: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the character spans of words that are not kept."""
    start, at = -1, 0
    for number, word in enumerate(words):
        if number in kept:
            if start >= 0:
                yield start, at
            start = -1
        elif start < 0:
            start = at
        at += len(word)
    if start >= 0:
        yield start, at
