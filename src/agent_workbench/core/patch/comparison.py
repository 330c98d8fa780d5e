"""Comparison of file contents: their alignment by equal lines, and the patch that makes one of the other."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.file_lines import FileLines
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import (
    FileChange,
    FileContent,
    FileOperation,
    FilePatch,
    Hunk,
    HunkLine,
    LineKind,
    Patch,
    hunk_ids,
)

Line = tuple[str, bool]

# With more lines, both sides together, difflib takes seconds and then minutes.
_DIRECT_LINES = 1500
_MAX_DEPTH = 10

CONTEXT_LINES = 3
"""Unchanged lines on either side of a change."""
_EXECUTABLE, _PLAIN = 0o100755, 0o100644


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


def compare_contents(changes: Iterable[FileChange]) -> Patch:
    """Return the patch of these changes, with three lines of context. `parse_patch` reads the same from its text.

    Raises `PatchError` for a content that is not UTF-8 text.
    """
    real = [change for change in changes if change.before != change.after]
    binary = next((change for change in real if not is_text_change(change)), None)
    if binary is not None:
        raise PatchError(
            f"{shown(binary.path)} is not UTF-8 text, so no diff can show its change",
            advice="Change it with a command, or leave it as it is.",
        )
    return Patch(tuple(map(compare_content, real)))


def compare_content(change: FileChange) -> FilePatch:
    """Return the change of one file as part of a patch; a content that is not text counts as empty."""
    operation, mode = FileOperation.MODIFY, None
    if change.before is None and change.after is not None:
        operation, mode = FileOperation.CREATE, _mode(change.after)
    elif change.after is None and change.before is not None:
        operation, mode = FileOperation.DELETE, _mode(change.before)
    elif change.before and change.after and change.before.executable != change.after.executable:
        mode = _mode(change.after)
    hunks = tuple(_hunks(change.path, _lines(change.before), _lines(change.after)))
    return FilePatch(operation, change.path, change.path, hunks, mode)


def is_text_change(change: FileChange) -> bool:
    """Return True if the file is UTF-8 text without NUL, before and after the change."""
    return all(_is_text(content) for content in (change.before, change.after) if content is not None)


def _is_text(content: FileContent) -> bool:
    try:
        content.data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content.data


def _lines(content: FileContent | None) -> list[tuple[str, bool]]:
    return FileLines(content.data).pairs if content is not None and _is_text(content) else []


def _mode(content: FileContent) -> int:
    return _EXECUTABLE if content.executable else _PLAIN


def _hunks(path: str, old: list[tuple[str, bool]], new: list[tuple[str, bool]]) -> Iterator[Hunk]:
    groups = list(_groups(shared_blocks(old, new), len(old), len(new)))
    bodies = [tuple(_body(group, old, new)) for group in groups]
    for group, lines, name in zip(groups, bodies, hunk_ids(path, bodies), strict=True):
        has_old = any(line.kind is not LineKind.ADDED for line in lines)
        has_new = any(line.kind is not LineKind.REMOVED for line in lines)
        yield Hunk(name, group[0].old + has_old, group[0].new + has_new, lines)


def _body(group: list[SharedBlock], old: list[tuple[str, bool]], new: list[tuple[str, bool]]) -> Iterator[HunkLine]:
    for block, following in pairwise(group):
        end = block.old + block.size
        yield from (HunkLine(LineKind.CONTEXT, *line) for line in old[block.old : end])
        yield from (HunkLine(LineKind.REMOVED, *line) for line in old[end : following.old])
        yield from (HunkLine(LineKind.ADDED, *line) for line in new[block.new + block.size : following.new])
    last = group[-1]
    yield from (HunkLine(LineKind.CONTEXT, *line) for line in old[last.old : last.old + last.size])


def _groups(blocks: list[SharedBlock], old_size: int, new_size: int) -> Iterator[list[SharedBlock]]:
    """Yield the blocks of each hunk: context, with a change between each block and the next.

    The outer blocks are cut to the lines of context, and may be empty.
    """
    start, end = SharedBlock(0, 0, 0), SharedBlock(old_size, new_size, 0)
    if not blocks or blocks[0][:2] != (0, 0):
        blocks = [start, *blocks]
    if blocks[-1].old + blocks[-1].size != old_size or blocks[-1].new + blocks[-1].size != new_size:
        blocks = [*blocks, end]
    group = [_last_of(blocks[0])]
    for block in blocks[1:-1]:
        if block.size > 2 * CONTEXT_LINES:
            yield [*group, _first_of(block)]
            group = [_last_of(block)]
        else:
            group.append(block)
    if len(blocks) > 1:
        yield [*group, _first_of(blocks[-1])]


def _first_of(block: SharedBlock) -> SharedBlock:
    return block._replace(size=min(block.size, CONTEXT_LINES))


def _last_of(block: SharedBlock) -> SharedBlock:
    cut = max(block.size - CONTEXT_LINES, 0)
    return SharedBlock(block.old + cut, block.new + cut, block.size - cut)
