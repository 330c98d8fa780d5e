"""What differs where old lines stand nowhere: their nearest place, and the first line that is another one there."""

import re
from collections.abc import Callable, Sequence
from operator import eq

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown

_OFTEN = 500
_MOST_LINES = 200
_WORD = re.compile(r"\w+")
_ADVICE = "Give the old lines exactly as they stand in the file, with enough context to be found in one place only."


def nearest_place(old: Sequence[str], lines: Sequence[str], header: int, start: int = 0) -> int:
    """Return the index from `start` on in `lines` that is most like the old lines; `header` where nothing is.

    Lines and words that they share count the more, the rarer they are in the file.
    """
    wanted = [
        (offset, token) for offset, line in enumerate(old[:_MOST_LINES]) for token in dict.fromkeys(_tokens(line))
    ]
    known = {token for _, token in wanted}
    found: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        for token in known.intersection(_tokens(line)):
            found.setdefault(token, []).append(at)
    votes: dict[int, float] = {}
    for offset, token in wanted:
        places = found.get(token, ())
        if len(places) <= _OFTEN:
            for place in places:
                if place - offset >= start:
                    votes[place - offset] = votes.get(place - offset, 0.0) + 1 / len(places)
    return min(votes, key=lambda at: (-votes[at], abs(at - header)), default=header)


def _tokens(line: str) -> list[str]:
    """Return the words of a line, and the whole line behind a blank, which no word begins with."""
    words = _WORD.findall(line)
    return [*words, f" {line}"] if words else []


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
