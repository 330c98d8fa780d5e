"""What a diff can mean when its numbers are not believed: every text that its hunks, placed in order, can make."""

from collections.abc import Iterator, Sequence

from bench.faults.draft import Hunk

_Sides = tuple[list[str], list[str]]
_ENOUGH = 40
# Where a dozen hunks fit a dozen places each, most ways come to the same few texts; nobody waits for all of them.
_TRIES = 2_000


def results(text: str, hunks: Sequence[Hunk]) -> set[str]:
    """Return every text that comes of placing the hunks in order where their old lines stand, up to a few dozen.

    White space at the ends of lines and the last line feed are not looked at. Empty if the old lines stand nowhere.
    """
    lines = _bare(text.split("\n"))
    if lines and not lines[-1]:
        lines.pop()
    found: set[str] = set()
    sides = [(_bare(hunk.old), _bare(hunk.new)) for hunk in hunks]
    places = _possible(sides, [_stands(hunk, lines) for hunk in hunks], len(lines))
    for _, made in zip(range(_TRIES), _ways(lines, sides, places, 0), strict=False):
        found.add("\n".join(made))
        if len(found) >= _ENOUGH:
            break
    return found


def bare(text: str | None) -> str:
    """Return the text as `results` compares it."""
    lines = _bare((text or "").split("\n"))
    return "\n".join(lines[:-1] if lines and not lines[-1] else lines)


def _ways(
    lines: Sequence[str], sides: Sequence[_Sides], places: Sequence[Sequence[int]], start: int
) -> Iterator[list[str]]:
    """Yield the lines from `start` on as the hunks make them, for every way to place them behind it."""
    if not sides:
        yield list(lines[start:])
        return
    old, new = sides[0]
    for at in places[0]:
        if at >= start:
            for rest in _ways(lines, sides[1:], places[1:], at + len(old)):
                yield [*lines[start:at], *new, *rest]


def _possible(sides: Sequence[_Sides], places: Sequence[Sequence[int]], end: int) -> list[list[int]]:
    """Return the places without those that leave none for the hunks behind, so that no way ends before its end."""
    kept: list[list[int]] = []
    for (old, _), found in zip(reversed(sides), reversed(places), strict=True):
        kept.append([at for at in found if at + len(old) <= end])
        end = kept[-1][-1] if kept[-1] else -1
    return kept[::-1]


def _stands(hunk: Hunk, lines: Sequence[str]) -> list[int]:
    old = _bare(hunk.old)
    if not old:
        return []
    if hunk.ends_file:
        at = len(lines) - len(old)
        return [at] if lines[max(at, 0) :] == old else []
    firsts = (at for at in range(len(lines) - len(old) + 1) if lines[at] == old[0])
    return [at for at in firsts if lines[at : at + len(old)] == old]


def _bare(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines]
