"""Alignment of two texts by their equal lines, fast on large files."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

Line = tuple[str, bool]

# With more lines, both sides together, difflib takes seconds and then minutes.
_DIRECT_LINES = 1500
_MAX_DEPTH = 10


class SharedBlock(NamedTuple):
    """`size` equal lines that begin at index `old` of one text and at index `new` of the other."""

    old: int
    new: int
    size: int


class _Region(NamedTuple):
    """A part of both texts between two blocks; the ends are exclusive."""

    old: int
    old_end: int
    new: int
    new_end: int
    depth: int


def shared_blocks(old: Sequence[Line], new: Sequence[Line], direct_lines: int = _DIRECT_LINES) -> list[SharedBlock]:
    """Return blocks of equal lines in the order of both texts; no block touches the next.

    Large regions are split at lines that are unique in both (Bram Cohen's patience diff); difflib compares small ones.
    A region over `direct_lines` without a unique line shares only its ends: a correct diff, though not the shortest.
    """
    found: list[SharedBlock] = []
    regions = [_Region(0, len(old), 0, len(new), 0)]
    while regions:
        region = _strip(regions.pop(), old, new, found)
        if region.old == region.old_end or region.new == region.new_end:
            continue
        if region.old_end - region.old + region.new_end - region.new <= direct_lines:
            found += _by_difflib(region, old, new)
        elif region.depth < _MAX_DEPTH and (anchors := _anchors(region, old, new)):
            regions += _between(region, anchors)
            found += anchors
    return _joined(sorted(found))


def _strip(region: _Region, old: Sequence[Line], new: Sequence[Line], found: list[SharedBlock]) -> _Region:
    """Return the region without the equal lines at its two ends; add these to `found`."""
    limit = min(region.old_end - region.old, region.new_end - region.new)
    head = tail = 0
    while head < limit and old[region.old + head] == new[region.new + head]:
        head += 1
    while tail < limit - head and old[region.old_end - tail - 1] == new[region.new_end - tail - 1]:
        tail += 1
    old_end, new_end = region.old_end - tail, region.new_end - tail
    found += (
        each for each in (SharedBlock(region.old, region.new, head), SharedBlock(old_end, new_end, tail)) if each.size
    )
    return _Region(region.old + head, old_end, region.new + head, new_end, region.depth)


def _by_difflib(region: _Region, old: Sequence[Line], new: Sequence[Line]) -> Iterator[SharedBlock]:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(a=old[region.old : region.old_end], b=new[region.new : region.new_end])
    for block in matcher.get_matching_blocks():
        if block.size:
            yield SharedBlock(region.old + block.a, region.new + block.b, block.size)


def _anchors(region: _Region, old: Sequence[Line], new: Sequence[Line]) -> list[SharedBlock]:
    """Return the longest sequence of lines that are unique on both sides and in the same order."""
    old_lines, new_lines = old[region.old : region.old_end], new[region.new : region.new_end]
    old_counts, new_counts = Counter(old_lines), Counter(new_lines)
    new_at = {line: at for at, line in enumerate(new_lines) if new_counts[line] == 1 and old_counts[line] == 1}
    pairs = [(at, new_at[line]) for at, line in enumerate(old_lines) if line in new_at]
    return [SharedBlock(region.old + a, region.new + b, 1) for a, b in _longest_rise(pairs)]


def _longest_rise(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence with rising second numbers (patience sorting with back links)."""
    tops: list[int] = []
    piles: list[int] = []
    before: list[int | None] = []
    for index, (_, value) in enumerate(pairs):
        pile = bisect_left(tops, value)
        before.append(piles[pile - 1] if pile else None)
        tops[pile : pile + 1] = [value]
        piles[pile : pile + 1] = [index]
    rise = []
    at = piles[-1] if piles else None
    while at is not None:
        rise.append(pairs[at])
        at = before[at]
    return rise[::-1]


def _between(region: _Region, anchors: Sequence[SharedBlock]) -> Iterator[_Region]:
    fence = SharedBlock(region.old_end, region.new_end, 0)
    for before, after in pairwise([SharedBlock(region.old - 1, region.new - 1, 1), *anchors, fence]):
        yield _Region(before.old + 1, after.old, before.new + 1, after.new, region.depth + 1)


def _joined(blocks: Sequence[SharedBlock]) -> list[SharedBlock]:
    joined: list[SharedBlock] = []
    for block in blocks:
        last = joined[-1] if joined else SharedBlock(0, 0, 0)
        if joined and (last.old + last.size, last.new + last.size) == (block.old, block.new):
            joined[-1] = SharedBlock(last.old, last.new, last.size + block.size)
        else:
            joined.append(block)
    return joined
