"""Which runs of a file's lines stand in it only once: where a hunk may begin, and how long it must be at least."""

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct, field

MAX_SHARED_LINES = 16
"""So many lines at most may a run share with another before it differs; a longer one is not followed."""


class Way(Struct, frozen=True):
    """One more line for a run that begins at `start`; `further` is None when that makes it stand in one place only."""

    start: int
    at: int
    further: "Shared | None"


class Shared(Struct, frozen=True):
    """Runs of equal lines that stand more than once, by where they begin (rising), and the next line of each.

    Only those from which a run that stands once can be reached over offered lines.
    """

    ways: tuple[Way, ...] = field(default=())


def unique_runs(lines: Sequence[str], offered: Collection[int]) -> Shared:
    """Return the ways to all runs of `offered` lines that stand in `lines` only once, from runs of no line at all."""
    every = range(len(lines))
    return Shared(tuple(sorted(_ways(lines, offered, every, frozenset(every), 0), key=lambda way: way.start)))


def _ways(
    lines: Sequence[str], offered: Collection[int], starts: Sequence[int], open_starts: Collection[int], depth: int
) -> Iterator[Way]:
    """Yield the next lines of runs of `depth` equal lines at `starts`, those of them in `open_starts` are offered."""
    groups: dict[str, list[int]] = {}
    for start in starts:
        if start + depth < len(lines):
            groups.setdefault(lines[start + depth], []).append(start)
    for group in groups.values():
        usable = [start for start in group if start in open_starts and start + depth in offered]
        if len(group) == 1:
            yield from (Way(start, start + depth, None) for start in usable)
        elif usable and depth < MAX_SHARED_LINES:
            found = sorted(_ways(lines, offered, group, frozenset(usable), depth + 1), key=lambda way: way.start)
            if found:
                further = Shared(tuple(found))
                yield from (Way(way.start, way.start + depth, further) for way in found)
