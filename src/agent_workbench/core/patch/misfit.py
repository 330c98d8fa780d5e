"""What differs where old lines stand nowhere: their nearest place, and the first line that is another one there."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import eq

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown

_OFTEN = 50
_ADVICE = "Give the old lines exactly as they stand in the file, with enough context to be found in one place only."


def nearest_place(old: Sequence[str], places: Mapping[str, Sequence[int]], header: int, start: int = 0) -> int:
    """Return the index from `start` on where most of the old lines stand; `header` where none that is rare does.

    `places` tells where each line of the file stands.
    """
    votes: Counter[int] = Counter()
    for offset, line in enumerate(old):
        found = places.get(line, ())
        if line.strip() and len(found) <= _OFTEN:
            votes.update(place - offset for place in found if place - offset >= start)
    return min(votes, key=lambda at: (-votes[at], abs(at - header)), default=header)


def misfit(
    what: str,
    old: Sequence[str],
    lines: Sequence[str],
    at: int,
    *,
    same: Callable[[str, str], bool] = eq,
    why: str = "",
) -> PatchError:
    """Return the error for old lines that stand nowhere: what differs at index `at`, where they nearly do.

    Letters that stand for bytes which are no text are shown as unknown.
    """
    for offset, expected in enumerate(old):
        found = lines[at + offset] if at + offset < len(lines) else None
        if found is None or not same(found, expected):
            there = "the end of the file" if found is None else _quoted(found)
            return PatchError(
                f"{what}; nearest is line {at + 1}, where line {at + offset + 1} differs: "
                f"expected {_quoted(expected)}, found {there}{why}",
                advice=_ADVICE,
            )
    return PatchError(
        f"{what}; nearest is line {at + 1}, where line {at + len(old)} differs: "
        "expected the end of the file without a line feed, found a line feed",
        advice=_ADVICE,
    )


def _quoted(body: str) -> str:
    text = "".join("\ufffd" if "\udc80" <= char <= "\udcff" else char for char in body)
    return repr(shown(text, 120))
