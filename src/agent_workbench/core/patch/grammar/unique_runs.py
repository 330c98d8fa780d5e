"""Runs of consecutive lines that occur once in a file: where a hunk may begin, and its least length."""

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct, field

MAX_SHARED_LINES = 16
"""The largest number of lines that two runs may share before they differ; longer ones are not followed."""


class RunStep(Struct, frozen=True):
    """The next line, `at`, of a run that begins at `start`; `further` is None if the run occurs once with it."""

    start: int
    at: int
    further: "SharedRuns | None"


class SharedRuns(Struct, frozen=True):
    """Equal runs that occur more than once, in the order of their beginnings, with the next line of each.

    It contains only runs that offered lines can extend to a run that occurs once.
    """

    ways: tuple[RunStep, ...] = field(default=())


def find_unique_runs(lines: Sequence[str], offered: Collection[int]) -> SharedRuns:
    """Return the steps from the empty run to all runs of `offered` lines that occur once in `lines`."""
    every = range(len(lines))
    return SharedRuns(tuple(sorted(_ways(lines, offered, every, frozenset(every), 0), key=lambda way: way.start)))


def _ways(
    lines: Sequence[str], offered: Collection[int], starts: Sequence[int], open_starts: Collection[int], depth: int
) -> Iterator[RunStep]:
    """Yield the next steps of runs of `depth` equal lines at `starts`; the runs at `open_starts` are offered."""
    groups: dict[str, list[int]] = {}
    for start in starts:
        if start + depth < len(lines):
            groups.setdefault(lines[start + depth], []).append(start)
    for group in groups.values():
        usable = [start for start in group if start in open_starts and start + depth in offered]
        if len(group) == 1:
            yield from (RunStep(start, start + depth, None) for start in usable)
        elif usable and depth < MAX_SHARED_LINES:
            found = sorted(_ways(lines, offered, group, frozenset(usable), depth + 1), key=lambda way: way.start)
            if found:
                further = SharedRuns(tuple(found))
                yield from (RunStep(way.start, way.start + depth, further) for way in found)
