"""Three-way merge of texts by lines that loses no line of either side."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

MARKER = "<!-- changed on both sides: first as it stood in the file, then as it was written -->\n"
# A comparison takes the product of the line counts at worst; beyond this limit texts count as entirely changed.
MAX_COMPARISONS = 4_000_000

Lines = Sequence[str]


def merge_cleanly(before: str, theirs: str, ours: str) -> str | None:
    """Return the merge of the three texts, None if both sides changed the same lines differently."""
    merged = merge(before, theirs, ours)
    return None if merged.count(MARKER) > max(theirs.count(MARKER), ours.count(MARKER)) else merged


def merge(before: str, theirs: str, ours: str) -> str:
    """Return `before` with the changes of both `theirs` and `ours`.

    Lines that both added at one place are all kept, theirs first. If both changed the same lines differently, both
    versions follow each other under `MARKER`. No line that only one side wrote is lost.
    """
    if ours in (theirs, before):
        return theirs
    if theirs == before:
        return ours
    base, first, second = (text.splitlines(keepends=True) for text in (before, theirs, ours))
    if len(base) * max(len(first), len(second)) > MAX_COMPARISONS:
        return "".join(_resolved(base, first, second))
    merged: list[str] = []
    position = first_position = second_position = 0
    for start, first_start, second_start, size in _common(base, first, second):
        parts = base[position:start], first[first_position:first_start], second[second_position:second_start]
        _append(merged, _resolved(*parts))
        _append(merged, base[start : start + size])
        position, first_position, second_position = start + size, first_start + size, second_start + size
    return "".join(merged)


def _common(base: Lines, first: Lines, second: Lines) -> Iterator[tuple[int, int, int, int]]:
    """Yield the runs of lines shared by all three, as three starts and a length. An empty run at the ends is last."""
    with_first, with_second = _matches(base, first), _matches(base, second)
    while with_first and with_second:
        (start, first_start, size), (other_start, second_start, other_size) = with_first[0], with_second[0]
        begin, end = max(start, other_start), min(start + size, other_start + other_size)
        if begin < end:
            yield begin, first_start + begin - start, second_start + begin - other_start, end - begin
        if start + size < other_start + other_size:
            with_first.pop(0)
        else:
            with_second.pop(0)
    yield len(base), len(first), len(second), 0


def _matches(base: Lines, other: Lines) -> list[tuple[int, int, int]]:
    blocks = SequenceMatcher(None, base, other, autojunk=False).get_matching_blocks()
    return [(block.a, block.b, block.size) for block in blocks if block.size]


def _resolved(base: Lines, first: Lines, second: Lines) -> Lines:
    if first in (second, base):
        return second
    if second == base:
        return first
    if not base:
        return _one_after_the_other(first, second)
    if not first or not second:
        return [MARKER, *first, *second]
    return _one_after_the_other([MARKER, *first], second)


def _one_after_the_other(first: Lines, second: Lines) -> Lines:
    lines = list(first)
    _append(lines, second)
    return lines


def _append(lines: list[str], more: Lines) -> None:
    # A last line without a newline would merge with the line that follows.
    if lines and more and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    lines += more
